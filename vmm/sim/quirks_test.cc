// Every switch of Quirks, both ways.

#include "vmm/sim/sim_fixture.h"

namespace expanse::sim {
namespace {

class Quirk : public SimTest {
 protected:
  // Starts with the defaults but for what `change` changes.
  template <typename Change>
  void StartWith(Change&& change) {
    sim.reset();
    Config config = SmallConfig();
    config.poison = false;
    change(config.quirks);
    StartWithContext(config);
  }
  // Two reservations side by side; the address of the first, each `size` long.
  abi::DevicePtr ReserveTwo(size_t size) {
    const abi::DevicePtr both = Reserve(2 * size);
    EXPECT_EQ(d.mem_address_free(both, 2 * size), abi::kSuccess);
    for (const abi::DevicePtr wanted : {both, both + size}) {
      abi::DevicePtr address = 0;
      EXPECT_EQ(d.mem_address_reserve(&address, size, 0, wanted, 0), abi::kSuccess);
      EXPECT_EQ(address, wanted);
    }
    return both;
  }
};

TEST_F(Quirk, OffsetMapError) {
  for (const abi::Result error : {abi::kInvalidValue, abi::kNotSupported}) {
    StartWith([&](Quirks& quirks) { quirks.offset_map_error = error; });
    EXPECT_EQ(d.mem_map(Reserve(2 * kChunk), kChunk, kChunk, Create(2 * kChunk), 0), error);
  }
}

TEST_F(Quirk, OversizeMapError) {
  for (const abi::Result error : {abi::kInvalidValue, abi::kNotSupported}) {
    StartWith([&](Quirks& quirks) { quirks.oversize_map_error = error; });
    EXPECT_EQ(d.mem_map(Reserve(2 * kChunk), 2 * kChunk, 0, Create(), 0), error);
  }
}

TEST_F(Quirk, UnmapHoleIsPartial) {
  for (const bool partial : {false, true}) {
    StartWith([&](Quirks& quirks) { quirks.unmap_hole_is_partial = partial; });
    const abi::DevicePtr base = Reserve(4 * kChunk);
    MapNew(base);
    MapNew(base + 2 * kChunk, 2 * kChunk);
    EXPECT_EQ(d.mem_unmap(base, 3 * kChunk), abi::kInvalidValue);  // Half a mapping: nothing either way.
    EXPECT_EQ(sim->ledger().mappings, 2u);
    EXPECT_EQ(d.mem_unmap(base, 4 * kChunk), abi::kInvalidValue);
    EXPECT_EQ(sim->ledger().mappings, partial ? 0u : 2u);
    Check();
  }
}

TEST_F(Quirk, UnmapAcrossReservations) {
  for (const bool allowed : {false, true}) {
    StartWith([&](Quirks& quirks) { quirks.unmap_across_reservations = allowed; });
    const abi::DevicePtr base = ReserveTwo(kChunk);
    MapNew(base);
    MapNew(base + kChunk);
    EXPECT_EQ(d.mem_unmap(base, 2 * kChunk), allowed ? abi::kSuccess : abi::kInvalidValue);
    EXPECT_EQ(sim->ledger().mappings, allowed ? 0u : 2u);
    Check();
  }
}

TEST_F(Quirk, NothingElseCrossesReservations) {
  StartWith([](Quirks&) {});
  const abi::DevicePtr base = ReserveTwo(kChunk);
  EXPECT_EQ(d.mem_map(base, 2 * kChunk, 0, Create(2 * kChunk), 0), abi::kInvalidValue);
  MapNew(base);
  MapNew(base + kChunk);
  EXPECT_EQ(Access(base, 2 * kChunk), abi::kInvalidValue);
  EXPECT_EQ(d.memset_d8_async(base, 1, 2 * kChunk, nullptr), abi::kInvalidValue);
}

TEST_F(Quirk, SetAccessSubrange) {
  for (const bool allowed : {false, true}) {
    StartWith([&](Quirks& quirks) { quirks.set_access_subrange = allowed; });
    const abi::DevicePtr base = Reserve(4 * kChunk);
    ASSERT_EQ(d.mem_map(base, 2 * kChunk, 0, Create(2 * kChunk), 0), abi::kSuccess);
    EXPECT_EQ(Access(base, kChunk), allowed ? abi::kSuccess : abi::kInvalidValue);
    EXPECT_EQ(sim->IsMapped({DeviceAddress(base), Bytes(2 * kChunk)}), allowed);
    EXPECT_EQ(Access(base, kChunk - 1), abi::kInvalidValue);
    EXPECT_EQ(Access(base + kChunk, 2 * kChunk), abi::kInvalidValue);  // Past what is mapped.
  }
}

TEST_F(Quirk, AddressFreeLive) {
  for (const bool allowed : {false, true}) {
    StartWith([&](Quirks& quirks) { quirks.address_free_live = allowed; });
    const abi::DevicePtr base = Reserve(2 * kChunk);
    const abi::MemHandle handle = MapNew(base);
    EXPECT_EQ(d.mem_address_free(base, 2 * kChunk), allowed ? abi::kSuccess : abi::kInvalidValue);
    EXPECT_EQ(sim->ledger().mappings, allowed ? 0u : 1u);
    EXPECT_EQ(sim->ledger().reservations, allowed ? 0u : 1u);
    EXPECT_EQ(d.mem_release(handle), abi::kSuccess);
    Check();
  }
}

TEST_F(Quirk, VmmNeedsContext) {
  for (const bool needed : {false, true}) {
    sim.reset();
    Config config = SmallConfig();
    config.quirks.vmm_needs_context = needed;
    Start(config);
    abi::DevicePtr address = 0;
    EXPECT_EQ(d.mem_address_reserve(&address, kChunk, 0, 0, 0), needed ? abi::kInvalidContext : abi::kSuccess);
    abi::Context context;
    ASSERT_EQ(d.primary_ctx_retain(&context, 0), abi::kSuccess);  // Retained is enough: it need not be current.
    EXPECT_EQ(d.mem_address_reserve(&address, kChunk, 0, 0, 0), abi::kSuccess);
  }
}

TEST_F(Quirk, PeerError) {
  for (const abi::Result error : {abi::kInvalidValue, abi::kPeerAccessUnsupported}) {
    sim.reset();
    Config config = SmallConfig();
    config.devices.push_back(config.devices[0]);
    config.quirks.peer_error = error;
    Start(config);
    const abi::DevicePtr base = Reserve(kChunk);
    MapNew(base);
    EXPECT_EQ(Access(base, kChunk, abi::kAccessReadWrite, 1), error);
    int can = 9;
    EXPECT_EQ(d.device_can_access_peer(&can, 0, 1), abi::kSuccess);
    EXPECT_EQ(can, 0);
  }
}

TEST_F(Quirk, HonourAddressHints) {
  for (const bool honour : {true, false}) {
    StartWith([&](Quirks& quirks) { quirks.honour_address_hints = honour; });
    const abi::DevicePtr first = Reserve(16 * kChunk);
    ASSERT_EQ(d.mem_address_free(first, 16 * kChunk), abi::kSuccess);
    abi::DevicePtr address = 0;
    // Not the address that would come without a hint either.
    const abi::DevicePtr hint = first + 4 * kChunk;
    ASSERT_EQ(d.mem_address_reserve(&address, kChunk, 0, hint, 0), abi::kSuccess);
    EXPECT_EQ(address == hint, honour);
  }
}

TEST_F(Quirk, ContextFreeCallsSeeSticky) {
  for (const bool see : {true, false}) {
    StartWith([&](Quirks& quirks) { quirks.context_free_calls_see_sticky = see; });
    sim->MakeSticky(abi::kLaunchFailed);
    abi::DevicePtr address = 0;
    EXPECT_EQ(d.mem_address_reserve(&address, kChunk, 0, 0, 0), see ? abi::kLaunchFailed : abi::kSuccess);
    EXPECT_EQ(d.ctx_synchronize(), abi::kLaunchFailed);
  }
}

TEST_F(Quirk, ReleaseLag) {
  for (const bool lag : {false, true}) {
    StartWith([&](Quirks& quirks) { quirks.release_lag = lag; });
    const abi::MemHandle all = Create(32 * kChunk);
    ASSERT_EQ(d.mem_release(all), abi::kSuccess);
    size_t free_bytes = 0, total = 0;
    ASSERT_EQ(d.mem_get_info(&free_bytes, &total), abi::kSuccess);
    EXPECT_EQ(free_bytes, lag ? 0 : total);
    abi::MemHandle handle = 0;
    const abi::AllocationProp prop = Prop();
    EXPECT_EQ(d.mem_create(&handle, kChunk, &prop, 0), lag ? abi::kOutOfMemory : abi::kSuccess);
    ASSERT_EQ(d.ctx_synchronize(), abi::kSuccess);
    EXPECT_EQ(d.mem_create(&handle, kChunk, &prop, 0), abi::kSuccess);
    Check();
  }
}

TEST_F(Quirk, AllocZeroSucceeds) {
  // The pools are not there at all, so neither answer to cuMemAllocAsync(0) is given.
  for (const bool succeeds : {false, true}) {
    StartWith([&](Quirks& quirks) { quirks.alloc_zero_succeeds = succeeds; });
    abi::DevicePtr address = 5;
    EXPECT_EQ(d.mem_alloc_async(&address, 0, nullptr), abi::kNotSupported);
    EXPECT_EQ(address, 5u);
  }
}

}  // namespace
}  // namespace expanse::sim

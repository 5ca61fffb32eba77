// The tables of the memory side, each alone.

#include <random>

#include "gtest/gtest.h"
#include "vmm/sim/address_space.h"
#include "vmm/sim/allocation_table.h"
#include "vmm/sim/contexts.h"
#include "vmm/sim/entry_traits.h"
#include "vmm/sim/error_text.h"
#include "vmm/sim/fault_injector.h"
#include "vmm/sim/mapping_table.h"
#include "vmm/sim/physical_memory.h"

namespace expanse::sim {
namespace {

using Use = AddressSpace::Use;
using Tiling = MappingTable::Tiling;

AddressRange Range(uint64_t begin, uint64_t size) { return {DeviceAddress(begin), Bytes(size)}; }

class AddressSpaceTest : public ::testing::TestWithParam<MemoryMode> {};

TEST_P(AddressSpaceTest, RangesAreAlignedDisjointAndFound) {
  AddressSpace space(GetParam(), GiB(16));
  const auto a = space.Take(MiB(4), MiB(2), DeviceAddress(), Use::kReservation);
  const auto b = space.Take(KiB(4), MiB(2), DeviceAddress(), Use::kReservation);
  const auto c = space.Take(KiB(8), KiB(4), DeviceAddress(), Use::kClassic);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->value() % MiB(2).count(), 0u);
  EXPECT_EQ(b->value() % MiB(2).count(), 0u);
  EXPECT_EQ(space.CheckInvariants(), absl::OkStatus());  // Disjoint.
  EXPECT_EQ(space.FindReservation(*a + Bytes(MiB(4).count() - 1)), (AddressRange{*a, MiB(4)}));
  EXPECT_EQ(space.FindReservation(*a + MiB(4)) == (AddressRange{*a, MiB(4)}), false);
  EXPECT_FALSE(space.FindReservation(*c).has_value());
  EXPECT_EQ(space.reservations(), 2u);
  EXPECT_EQ(space.reserved_bytes(), MiB(4) + KiB(4));
  space.GiveBack(*a);
  EXPECT_FALSE(space.FindReservation(*a).has_value());
  EXPECT_EQ(space.CheckInvariants(), absl::OkStatus());
}

TEST_P(AddressSpaceTest, HintsAreHonouredWhereFreeAndAligned) {
  AddressSpace space(GetParam(), GiB(16));
  const auto a = space.Take(MiB(8), MiB(2), DeviceAddress(), Use::kReservation);
  ASSERT_TRUE(a);
  space.GiveBack(*a);
  EXPECT_EQ(space.Take(MiB(4), MiB(2), *a, Use::kReservation), a);
  EXPECT_EQ(space.Take(MiB(2), MiB(2), *a + MiB(4), Use::kReservation), *a + MiB(4));
  const auto taken = space.Take(MiB(2), MiB(2), *a, Use::kReservation);
  ASSERT_TRUE(taken);
  EXPECT_NE(*taken, *a);
  const auto odd = space.Take(MiB(2), MiB(2), *a + MiB(6) + KiB(4), Use::kReservation);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->value() % MiB(2).count(), 0u);
  EXPECT_EQ(space.CheckInvariants(), absl::OkStatus());
}

TEST_P(AddressSpaceTest, TheLimitHolds) {
  AddressSpace space(GetParam(), GiB(1));
  EXPECT_FALSE(space.Take(GiB(1) + KiB(4), KiB(4), DeviceAddress(), Use::kReservation));
  EXPECT_FALSE(space.Take(KiB(4), GiB(2), DeviceAddress(), Use::kReservation));
  const auto all = space.Take(GiB(1), KiB(4), DeviceAddress(), Use::kReservation);
  ASSERT_TRUE(all);
  EXPECT_FALSE(space.Take(KiB(4), KiB(4), DeviceAddress(), Use::kClassic));
  space.GiveBack(*all);
  EXPECT_TRUE(space.Take(KiB(4), KiB(4), DeviceAddress(), Use::kClassic));
}

TEST_P(AddressSpaceTest, RandomUseKeepsTheInvariants) {
  AddressSpace space(GetParam(), MiB(256));
  std::mt19937_64 random(7);
  std::vector<DeviceAddress> held;
  for (int i = 0; i < 2000; ++i) {
    if (held.empty() || random() % 2 == 0) {
      const Use use = random() % 2 == 0 ? Use::kReservation : Use::kClassic;
      const Bytes alignment = KiB(uint64_t{4} << (random() % 10));
      if (const auto at = space.Take(KiB(4) * (1 + random() % 1000), alignment, DeviceAddress(), use)) {
        EXPECT_EQ(at->value() % alignment.count(), 0u);
        held.push_back(*at);
      }
    } else {
      std::swap(held[random() % held.size()], held.back());
      space.GiveBack(held.back());
      held.pop_back();
    }
    ASSERT_EQ(space.CheckInvariants(), absl::OkStatus());
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, AddressSpaceTest, ::testing::Values(MemoryMode::kReal, MemoryMode::kAccounting));

TEST(PhysicalMemory, CommitsUpToWhatNobodyElseTook) {
  Config config;
  config.memory = MemoryMode::kAccounting;
  config.devices[0].total_memory = MiB(8);
  auto memory = PhysicalMemory::Create(config.devices[0], config);
  ASSERT_TRUE(memory.ok());
  memory->SetTakenByOthers(MiB(4));
  EXPECT_EQ(memory->available(), MiB(4));
  const auto offset = memory->Commit(MiB(4));
  ASSERT_TRUE(offset);
  EXPECT_FALSE(memory->Commit(KiB(4)));
  memory->SetTakenByOthers(MiB(100));  // More than there is: none left, and no wrap.
  EXPECT_EQ(memory->available(), Bytes());
  memory->SetTakenByOthers(Bytes());
  memory->Free(*offset, MiB(4));
  EXPECT_EQ(memory->committed(), Bytes());
  EXPECT_EQ(memory->committed_peak(), MiB(4));
  memory->ResetPeak();
  EXPECT_EQ(memory->committed_peak(), Bytes());
  EXPECT_EQ(memory->CheckInvariants(), absl::OkStatus());
}

TEST(AllocationTable, ANumberLivesWithItsMemoryAndNeverComesBack) {
  AllocationTable table;
  Allocation* a = table.Add(DeviceOrdinal(0), MiB(2), 0, {}, false);
  const abi::MemHandle handle = AllocationTable::HandleOf(*a);
  EXPECT_NE(handle, 0u);
  EXPECT_EQ(table.Find(handle), a);
  EXPECT_EQ(table.Find(0), nullptr);
  ++a->mappings;  // Kept by a mapping while the handle is dead.
  table.DropReference(*a);
  EXPECT_EQ(table.Find(handle), nullptr);
  EXPECT_EQ(table.CheckInvariants(), absl::OkStatus());
  table.AddReference(*a);
  EXPECT_EQ(table.Find(handle), a);
  table.DropReference(*a);
  --a->mappings;
  table.Erase(*a);
  EXPECT_EQ(table.handle_count(), 0u);
  EXPECT_NE(AllocationTable::HandleOf(*table.Add(DeviceOrdinal(0), MiB(2), 0, {}, false)), handle);
  EXPECT_EQ(table.CheckInvariants(), absl::OkStatus());
}

class MappingTableTest : public ::testing::Test {
 protected:
  // Three mappings of 10, side by side from 100, and one at 200.
  void SetUp() override {
    for (const uint64_t begin : {100, 110, 120, 200}) table.Add(Range(begin, 10), *NewAllocation(), AccessMask());
  }
  Allocation* NewAllocation() { return allocations.Add(DeviceOrdinal(0), Bytes(4096), 0, {}, false); }

  AllocationTable allocations;
  MappingTable table;
};

TEST_F(MappingTableTest, FindsByAnyAddressInside) {
  EXPECT_EQ(table.Find(DeviceAddress(99)), nullptr);
  ASSERT_NE(table.Find(DeviceAddress(119)), nullptr);
  EXPECT_EQ(table.Find(DeviceAddress(119))->range, Range(110, 10));
  EXPECT_EQ(table.Find(DeviceAddress(130)), nullptr);
  EXPECT_EQ(table.Find(DeviceAddress(209))->range, Range(200, 10));
}

TEST_F(MappingTableTest, TellsHowARangeIsTiled) {
  EXPECT_EQ(table.TilingOf(Range(100, 30)), Tiling::kExact);
  EXPECT_EQ(table.TilingOf(Range(110, 10)), Tiling::kExact);
  EXPECT_EQ(table.TilingOf(Range(120, 90)), Tiling::kHoles);
  EXPECT_EQ(table.TilingOf(Range(90, 20)), Tiling::kHoles);
  EXPECT_EQ(table.TilingOf(Range(120, 20)), Tiling::kHoles);
  EXPECT_EQ(table.TilingOf(Range(140, 10)), Tiling::kHoles);
  EXPECT_EQ(table.TilingOf(Range(105, 25)), Tiling::kPartial);
  EXPECT_EQ(table.TilingOf(Range(100, 25)), Tiling::kPartial);
  EXPECT_EQ(table.TilingOf(Range(102, 3)), Tiling::kPartial);
}

TEST_F(MappingTableTest, CoversAndAnyIn) {
  EXPECT_TRUE(table.Covers(Range(105, 20)));
  EXPECT_FALSE(table.Covers(Range(105, 26)));
  EXPECT_FALSE(table.Covers(Range(99, 5)));
  EXPECT_TRUE(table.AnyIn(Range(0, 101)));
  EXPECT_FALSE(table.AnyIn(Range(0, 100)));
  EXPECT_FALSE(table.AnyIn(Range(130, 70)));
  EXPECT_TRUE(table.AnyIn(Range(130, 71)));
}

TEST_F(MappingTableTest, EraseCountsDown) {
  const Mapping gone = table.Erase(DeviceAddress(110));
  EXPECT_EQ(gone.range, Range(110, 10));
  EXPECT_EQ(gone.allocation->mappings, 0u);
  EXPECT_EQ(table.count(), 3u);
  EXPECT_EQ(table.TilingOf(Range(100, 30)), Tiling::kHoles);
  EXPECT_EQ(table.CheckInvariants(), absl::OkStatus());
  ++gone.allocation->mappings;
  table.Add(Range(110, 10), *gone.allocation, AccessMask());
  EXPECT_FALSE(table.CheckInvariants().ok());  // The count above is one too many, and is noticed.
}

TEST(AccessMask, IsKeptForEachDevice) {
  AccessMask mask;
  const DeviceOrdinal first(0), last(63);
  EXPECT_EQ(mask.Get(first), abi::kAccessNone);
  mask.Set(first, abi::kAccessRead);
  mask.Set(last, abi::kAccessReadWrite);
  EXPECT_EQ(mask.Get(first), abi::kAccessRead);
  EXPECT_EQ(mask.Get(last), abi::kAccessReadWrite);
  mask.Set(last, abi::kAccessRead);
  EXPECT_EQ(mask.Get(last), abi::kAccessRead);
  EXPECT_FALSE(mask.any_writes());
  mask.Set(last, abi::kAccessNone);
  EXPECT_EQ(mask.Get(last), abi::kAccessNone);
  EXPECT_TRUE(mask.any_reads());
}

TEST(Contexts, AreCountedAndLoseTheirErrorWithTheLastReference) {
  Contexts contexts(2);
  const DeviceOrdinal device(1);
  EXPECT_FALSE(contexts.Release(device));
  const abi::Context context = contexts.Retain(device);
  EXPECT_EQ(contexts.Retain(device), context);
  EXPECT_EQ(contexts.DeviceOf(context), device);
  EXPECT_FALSE(contexts.DeviceOf(nullptr).has_value());
  EXPECT_FALSE(contexts.DeviceOf(reinterpret_cast<abi::Context>(uintptr_t{77})).has_value());
  contexts.MakeSticky(device, abi::kIllegalAddress);
  contexts.MakeSticky(device, abi::kLaunchFailed);  // The first one stays.
  EXPECT_EQ(contexts.sticky(device), abi::kIllegalAddress);
  EXPECT_EQ(contexts.sticky(DeviceOrdinal(0)), abi::kSuccess);
  EXPECT_TRUE(contexts.Release(device));
  EXPECT_EQ(contexts.AnySticky(), abi::kIllegalAddress);
  EXPECT_TRUE(contexts.Release(device));
  EXPECT_EQ(contexts.AnySticky(), abi::kSuccess);
  EXPECT_EQ(contexts.CheckInvariants(), absl::OkStatus());
}

TEST(FaultInjector, HitsTheNthCallOnce) {
  FaultInjector faults;
  faults.FailNthCall(EntryPoint::mem_map, 2, abi::kUnknown);
  EXPECT_FALSE(faults.OnCall(EntryPoint::mem_unmap, true));
  EXPECT_FALSE(faults.OnCall(EntryPoint::mem_map, true));
  EXPECT_EQ(faults.OnCall(EntryPoint::mem_map, true), abi::kUnknown);
  EXPECT_FALSE(faults.OnCall(EntryPoint::mem_map, true));
  EXPECT_EQ(faults.failable_calls(), 4u);
}

TEST(FaultInjector, AnyCountsFailableCallsOnly) {
  FaultInjector faults;
  faults.FailNthCallOfAny(2, abi::kOutOfMemory);
  EXPECT_FALSE(faults.OnCall(EntryPoint::mem_map, true));
  EXPECT_FALSE(faults.OnCall(EntryPoint::device_get, false));
  EXPECT_EQ(faults.OnCall(EntryPoint::event_query, true), abi::kOutOfMemory);
  faults.FailNthCallOfAny(1, abi::kOutOfMemory);
  faults.Clear();
  EXPECT_FALSE(faults.OnCall(EntryPoint::event_query, true));
}

TEST(FaultInjector, CreationsStopAfterABudget) {
  FaultInjector faults;
  EXPECT_TRUE(faults.AllowsCreate(TiB(1)));
  faults.FailCreateAfter(MiB(3));
  EXPECT_FALSE(faults.AllowsCreate(MiB(4)));
  EXPECT_TRUE(faults.AllowsCreate(MiB(2)));
  faults.NoteCreated(MiB(2));
  EXPECT_FALSE(faults.AllowsCreate(MiB(2)));
  faults.Clear();
  EXPECT_TRUE(faults.AllowsCreate(MiB(2)));
}

TEST(EntryTraits, PureQueriesAreNotFailable) {
  for (const EntryPoint query : {EntryPoint::init, EntryPoint::get_error_name, EntryPoint::device_get_attribute,
                                 EntryPoint::ctx_set_current, EntryPoint::mem_get_access}) {
    EXPECT_FALSE(TraitsOf(query).failable) << SymbolName(query);
  }
  for (const EntryPoint call :
       {EntryPoint::primary_ctx_retain, EntryPoint::primary_ctx_release, EntryPoint::mem_get_info,
        EntryPoint::mem_create, EntryPoint::mem_unmap, EntryPoint::event_query, EntryPoint::stream_create}) {
    EXPECT_TRUE(TraitsOf(call).failable) << SymbolName(call);
  }
}

TEST(ErrorText, KnowsEveryResultThatAbiNames) {
  for (const abi::Result result : {abi::kSuccess,
                                   abi::kInvalidValue,
                                   abi::kOutOfMemory,
                                   abi::kNotInitialized,
                                   abi::kDeinitialized,
                                   abi::kStubLibrary,
                                   abi::kCallRequiresNewerDriver,
                                   abi::kDeviceUnavailable,
                                   abi::kNoDevice,
                                   abi::kInvalidDevice,
                                   abi::kInvalidContext,
                                   abi::kPeerAccessUnsupported,
                                   abi::kOperatingSystem,
                                   abi::kInvalidHandle,
                                   abi::kIllegalState,
                                   abi::kLossyQuery,
                                   abi::kNotFound,
                                   abi::kNotReady,
                                   abi::kIllegalAddress,
                                   abi::kPeerAccessAlreadyEnabled,
                                   abi::kPeerAccessNotEnabled,
                                   abi::kContextIsDestroyed,
                                   abi::kLaunchFailed,
                                   abi::kNotPermitted,
                                   abi::kNotSupported,
                                   abi::kSystemNotReady,
                                   abi::kSystemDriverMismatch,
                                   abi::kStreamCaptureUnsupported,
                                   abi::kStreamCaptureInvalidated,
                                   abi::kStreamCaptureImplicit,
                                   abi::kCapturedEvent,
                                   abi::kUnknown}) {
    EXPECT_NE(ErrorName(result), nullptr) << result;
    EXPECT_NE(ErrorString(result), nullptr) << result;
  }
  EXPECT_STREQ(ErrorName(abi::kInvalidValue), "CUDA_ERROR_INVALID_VALUE");
  EXPECT_STREQ(ErrorString(abi::kInvalidValue), "invalid argument");
  EXPECT_EQ(ErrorName(static_cast<abi::Result>(12345)), nullptr);
}

}  // namespace
}  // namespace expanse::sim

// Failures: injected, sticky, and memory that is not there.

#include "vmm/sim/sim_fixture.h"

namespace expanse::sim {
namespace {

class Faults : public SimTest {
 protected:
  void SetUp() override {
    Config config = SmallConfig();
    config.memory = MemoryMode::kAccounting;
    StartWithContext(config);
  }
  abi::Result TryCreate(size_t size = kChunk) {
    abi::MemHandle handle = 0;
    const abi::AllocationProp prop = Prop();
    return d.mem_create(&handle, size, &prop, 0);
  }
};

TEST_F(Faults, TheNthCallFailsAndDoesNothing) {
  sim->FailNthCall(EntryPoint::mem_create, 2, abi::kUnknown);
  EXPECT_EQ(TryCreate(), abi::kSuccess);
  EXPECT_EQ(TryCreate(), abi::kUnknown);
  EXPECT_EQ(sim->ledger().handles, 1u);
  EXPECT_EQ(TryCreate(), abi::kSuccess);
}

TEST_F(Faults, EveryFailableCallOfAScenarioCanBeFailedInTurn) {
  // A failed call leaves everything as it was, so the scenario can be ended in reverse from wherever it stopped.
  const auto scenario = [&](uint64_t fail) -> uint64_t {
    const uint64_t before = sim->FailableCalls();
    if (fail > 0) sim->FailNthCallOfAny(fail, abi::kOutOfMemory);
    const abi::AllocationProp prop = Prop();
    abi::DevicePtr base = 0;
    abi::MemHandle handle = 0;
    const bool reserved = d.mem_address_reserve(&base, kChunk, 0, 0, 0) == abi::kSuccess;
    const bool created = d.mem_create(&handle, kChunk, &prop, 0) == abi::kSuccess;
    const bool mapped = reserved && created && d.mem_map(base, kChunk, 0, handle, 0) == abi::kSuccess;
    if (mapped) (void)Access(base, kChunk);
    const uint64_t calls = sim->FailableCalls() - before;
    sim->ClearFaults();
    EXPECT_EQ(sim->CheckInvariants(), absl::OkStatus());
    if (mapped) {
      EXPECT_EQ(d.mem_unmap(base, kChunk), abi::kSuccess);
    }
    if (created) {
      EXPECT_EQ(d.mem_release(handle), abi::kSuccess);
    }
    if (reserved) {
      EXPECT_EQ(d.mem_address_free(base, kChunk), abi::kSuccess);
    }
    return calls;
  };
  ASSERT_EQ(scenario(0), 4u);
  for (uint64_t n = 1; n <= 4; ++n) {
    scenario(n);
    EXPECT_EQ(sim->ledger().handles + sim->ledger().reservations + sim->ledger().mappings, 0u) << n;
  }
}

TEST_F(Faults, CreationStopsAfterSoManyBytes) {
  sim->FailCreateAfter(Bytes(3 * kChunk));
  EXPECT_EQ(TryCreate(2 * kChunk), abi::kSuccess);
  EXPECT_EQ(TryCreate(2 * kChunk), abi::kOutOfMemory);
  EXPECT_EQ(TryCreate(), abi::kSuccess);
  abi::DevicePtr classic = 0;
  EXPECT_EQ(d.mem_alloc(&classic, 1), abi::kOutOfMemory);
  sim->ClearFaults();
  EXPECT_EQ(d.mem_alloc(&classic, 1), abi::kSuccess);
}

TEST_F(Faults, OthersTakeMemory) {
  size_t free_bytes = 0, total = 0;
  ASSERT_EQ(d.mem_get_info(&free_bytes, &total), abi::kSuccess);
  EXPECT_EQ(free_bytes, MiB(64).count());
  sim->SetTakenByOthers(DeviceOrdinal(0), MiB(60));
  ASSERT_EQ(d.mem_get_info(&free_bytes, &total), abi::kSuccess);
  EXPECT_EQ(free_bytes, MiB(4).count());
  EXPECT_EQ(total, MiB(64).count());
  EXPECT_EQ(TryCreate(3 * kChunk), abi::kOutOfMemory);
  EXPECT_EQ(TryCreate(2 * kChunk), abi::kSuccess);
  EXPECT_EQ(TryCreate(), abi::kOutOfMemory);
  sim->SetTakenByOthers(DeviceOrdinal(0), Bytes());
  EXPECT_EQ(TryCreate(), abi::kSuccess);
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), Bytes(3 * kChunk));
}

TEST_F(Faults, AStickyErrorIsEverywhereButInQueriesAndTheContextStack) {
  const abi::DevicePtr base = Reserve(2 * kChunk);
  const abi::MemHandle handle = MapNew(base);
  abi::DevicePtr classic = 0;
  ASSERT_EQ(d.mem_alloc(&classic, 100), abi::kSuccess);
  sim->MakeSticky(abi::kLaunchFailed);
  size_t a = 0, b = 0;
  abi::Stream stream = nullptr;
  abi::Event event = nullptr;
  EXPECT_EQ(d.mem_get_info(&a, &b), abi::kLaunchFailed);
  EXPECT_EQ(d.mem_unmap(base, kChunk), abi::kLaunchFailed);
  EXPECT_EQ(d.mem_release(handle), abi::kLaunchFailed);
  EXPECT_EQ(d.mem_free(classic), abi::kLaunchFailed);
  EXPECT_EQ(d.stream_create(&stream, 0), abi::kLaunchFailed);
  EXPECT_EQ(d.event_create(&event, 0), abi::kLaunchFailed);
  EXPECT_EQ(d.stream_synchronize(nullptr), abi::kLaunchFailed);
  EXPECT_EQ(d.memset_d8_async(base, 0, 1, nullptr), abi::kLaunchFailed);
  EXPECT_EQ(TryCreate(), abi::kLaunchFailed);
  EXPECT_EQ(sim->ledger().mappings, 1u);
  int count = 0;
  abi::Context context = nullptr;
  EXPECT_EQ(d.device_get_count(&count), abi::kSuccess);
  EXPECT_EQ(d.ctx_pop_current(&context), abi::kSuccess);
  EXPECT_EQ(d.ctx_push_current(context), abi::kSuccess);
  sim->ClearFaults();  // Not of that kind.
  EXPECT_EQ(TryCreate(), abi::kLaunchFailed);
  sim->ResetStickyError();
  EXPECT_EQ(d.mem_unmap(base, kChunk), abi::kSuccess);
}

TEST_F(Faults, AStickyErrorEndsWithItsContext) {
  sim->MakeSticky(abi::kIllegalAddress);
  ASSERT_EQ(d.primary_ctx_release(0), abi::kSuccess);
  abi::Context context = nullptr;
  ASSERT_EQ(d.primary_ctx_retain(&context, 0), abi::kSuccess);
  EXPECT_EQ(d.ctx_synchronize(), abi::kSuccess);
}

TEST_F(Faults, WhatIsOutOfScopeSaysSo) {
  abi::DevicePtr address = 0;
  abi::MemPool pool = nullptr;
  EXPECT_EQ(d.mem_alloc_async(&address, 100, nullptr), abi::kNotSupported);
  EXPECT_EQ(d.mem_free_async(address, nullptr), abi::kNotSupported);
  EXPECT_EQ(d.device_get_default_mem_pool(&pool, 0), abi::kNotSupported);
  EXPECT_EQ(d.mem_pool_create(&pool, nullptr), abi::kNotSupported);
  int value = 9;
  EXPECT_EQ(d.device_get_attribute(&value, abi::kAttributeMemoryPools, 0), abi::kSuccess);
  EXPECT_EQ(value, 0);
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) EXPECT_NE(d.member, nullptr) << #symbol;
#include "vmm/driver_entry_points.inc"
}

}  // namespace
}  // namespace expanse::sim

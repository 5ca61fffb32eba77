// The device runs out of memory at every point of a scenario, or gives back late what it was given.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/faults/scenario.h"

namespace expanse::faults {
namespace {

constexpr Bytes kChunk = MiB(2);
constexpr Bytes kDeviceMemory = MiB(128);  // as the scenario's

class Shortage : public ::testing::TestWithParam<Growth> {
 protected:
  void SetUp() override { settings_.growth = GetParam(); }
  Settings settings_;
};

TEST_P(Shortage, CreationFailsAfterAnyNumberOfChunks) {
  for (const bool release_lag : {false, true}) {
    settings_.quirks.release_lag = release_lag;
    uint64_t relieved = 0;
    for (uint64_t chunks = 0; chunks <= 50 && !HasFailure(); ++chunks) {
      SCOPED_TRACE(absl::StrCat("after ", chunks, " chunks, release_lag ", release_lag));
      Scenario scenario(settings_, Fault());
      scenario.simulator().FailCreateAfter(kChunk * chunks);
      scenario.relieve = [&] {
        ++relieved;
        scenario.simulator().ClearFaults();
      };
      scenario.Run();
      EXPECT_EQ(scenario.stats().chunks_quarantined, 0u);
    }
    EXPECT_GT(relieved, 30u);
  }
}

TEST_P(Shortage, AnotherProcessTakesWhatIsFreeAtAnyStep) {
  int steps = 1;
  uint64_t relieved = 0;
  for (int from = 0; from < steps && !HasFailure(); ++from) {
    for (const uint64_t spared : {0, 1, 3}) {
      SCOPED_TRACE(absl::StrCat("from step ", from, ", but for ", spared, " chunks"));
      Scenario scenario(settings_, Fault());
      sim::Simulator& simulator = scenario.simulator();
      bool taking = true;
      scenario.before_step = [&](int step) {
        if (step < from || !taking) return;
        const Bytes free = kDeviceMemory - simulator.committed(DeviceOrdinal(0));
        simulator.SetTakenByOthers(DeviceOrdinal(0), free - std::min(free, kChunk * spared));
      };
      scenario.relieve = [&] {
        ++relieved;
        taking = false;
        simulator.SetTakenByOthers(DeviceOrdinal(0), Bytes());
      };
      scenario.Run();
      EXPECT_EQ(scenario.stats().chunks_quarantined, 0u);
      steps = scenario.steps();
    }
  }
  EXPECT_GT(steps, 20);
  EXPECT_GT(relieved, 20u);
}

// Released memory that the device gives out again only after a synchronisation is waited for, and a wait that fails is
// made again by the next request.
TEST_P(Shortage, WhatWasReleasedLatelyIsHadAfterASynchronisation) {
  sim::Config config;
  config.devices[0].total_memory = kDeviceMemory;
  config.memory = sim::MemoryMode::kAccounting;
  config.quirks.release_lag = true;
  auto simulator = sim::Simulator::Create(config);
  ASSERT_TRUE(simulator.ok()) << simulator.status();
  AllocatorOptions options;
  options.growth = GetParam();
  auto allocator = Allocator::Create((*simulator)->driver(), options);
  ASSERT_TRUE(allocator.ok()) << allocator.status();
  const auto allocate = [&] { return (*allocator)->Allocate(MiB(120), StreamHandle()); };

  auto block = allocate();
  ASSERT_TRUE(block.ok()) << block.status();
  ASSERT_EQ((*allocator)->Free(*block), absl::OkStatus());
  ASSERT_EQ(*(*allocator)->Trim(Bytes()), MiB(120));

  (*simulator)->FailNthCall(EntryPoint::ctx_synchronize, 1, abi::kUnknown);
  block = allocate();
  EXPECT_TRUE(absl::IsInternal(block.status())) << block.status();
  EXPECT_NE(std::string(block.status().message()).find("cuCtxSynchronize"), std::string::npos) << block.status();
  EXPECT_EQ((*allocator)->CheckInvariants(), absl::OkStatus());
  block = allocate();
  EXPECT_TRUE(block.ok()) << block.status();
  EXPECT_EQ((*allocator)->CheckInvariants(), absl::OkStatus());
  allocator->reset();
  EXPECT_TRUE((*simulator)->ledger().Balanced()) << (*simulator)->ledger().ToString();
}

INSTANTIATE_TEST_SUITE_P(Growth, Shortage, ::testing::Values(Growth::kBalanced, Growth::kLazy, Growth::kFrugal),
                         [](const ::testing::TestParamInfo<Growth>& info) { return NameOf(info.param); });

}  // namespace
}  // namespace expanse::faults

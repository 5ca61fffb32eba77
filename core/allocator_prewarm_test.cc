// Scenarios of memory that is created ahead, by the caller's thread or one of the allocator.

#include <string>
#include <vector>

#include "core/allocator_fixture.h"
#include "core/process_budgets.h"

namespace expanse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Both modes leave the same behind once the background is waited for.
class PrewarmTest : public AllocatorTest, public ::testing::WithParamInterface<PrewarmMode> {
 protected:
  absl::Status Prewarm(Bytes target) {
    absl::Status status = allocator_->Prewarm(target, GetParam());
    if (status.ok()) status = allocator_->WaitForPrewarm();
    Check();
    return status;
  }
};

TEST_P(PrewarmTest, WhatWasCreatedAheadServesLaterGrowths) {
  Start();
  EXPECT_EQ(Prewarm(MiB(40)), absl::OkStatus());
  EXPECT_EQ(stats().reserved.current, MiB(40));
  EXPECT_EQ(stats().idle.current, MiB(40));
  EXPECT_EQ(stats().prewarmed.current, MiB(40));
  EXPECT_EQ(stats().chunks_prewarmed, 20u);
  const uint64_t creations = Calls(EntryPoint::mem_create);
  const DeviceAddress a = Alloc(MiB(30));
  EXPECT_EQ(stats().prewarmed.current, MiB(10));
  Alloc(KiB(4), NewStream());
  Alloc(MiB(8), NewStream());
  EXPECT_EQ(Calls(EntryPoint::mem_create), creations);
  EXPECT_EQ(stats().prewarmed.current, Bytes());
  Free(a);
  EXPECT_EQ(stats().prewarmed.current, Bytes()) << "memory that was taken is like any other";
  EXPECT_EQ(stats().prewarm_stalls.count, 0u) << "it was ready";
}

TEST_P(PrewarmTest, TheTargetIsWhatIsReservedInAllAndTrimUndoesIt) {
  Start();
  Alloc(MiB(10));
  EXPECT_EQ(Prewarm(MiB(30) - KiB(1)), absl::OkStatus());
  EXPECT_EQ(stats().reserved.current, MiB(30)) << "whole chunks";
  const uint64_t calls = DriverCalls();
  EXPECT_EQ(Prewarm(MiB(20)), absl::OkStatus());
  EXPECT_EQ(DriverCalls(), calls);
  EXPECT_EQ(*allocator_->Trim(MiB(14)), MiB(16));
  EXPECT_EQ(stats().prewarmed.current, MiB(4));
  EXPECT_EQ(Prewarm(MiB(16)), absl::OkStatus());
  EXPECT_EQ(stats().prewarmed.current, MiB(6));
}

TEST_P(PrewarmTest, MoreThanTheLimitIsRefusedByNameAndCreatesNothing) {
  AllocatorOptions options;
  options.limit = MiB(40);
  Start(SmallDevice(), options);
  const absl::Status status = Prewarm(MiB(41));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("asked to prewarm 41.00 MiB"), HasSubstr("at most the limit of 40.00 MiB")));
  EXPECT_EQ(stats().reserved.current, Bytes());
  EXPECT_EQ(Prewarm(MiB(40)), absl::OkStatus());
  Alloc(MiB(40));
}

TEST_P(PrewarmTest, WhatADeviceThatRunsOutGaveIsKept) {
  Start();
  sim_->SetTakenByOthers(DeviceOrdinal(0), MiB(40));
  EXPECT_EQ(Prewarm(MiB(50)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().reserved.current, MiB(24));
  EXPECT_EQ(allocator_->WaitForPrewarm().code(), absl::StatusCode::kResourceExhausted) << "until the next job";
  Alloc(MiB(24));
  sim_->SetTakenByOthers(DeviceOrdinal(0), Bytes());
  EXPECT_EQ(Prewarm(MiB(64)), absl::OkStatus());
  EXPECT_EQ(allocator_->WaitForPrewarm(), absl::OkStatus());
  Alloc(MiB(40));
}

TEST_P(PrewarmTest, TheHandleBudgetHolds) {
  Start();
  const ProcessBudgets before = GetProcessBudgets();
  EXPECT_EQ(SetProcessHandleBudget(before.handles_taken + 5), absl::OkStatus());
  const absl::Status status = Prewarm(MiB(40));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("handle budget"));
  EXPECT_EQ(stats().reserved.current, MiB(10));
  EXPECT_EQ(SetProcessHandleBudget(before.handles_limit), absl::OkStatus());
}

TEST_P(PrewarmTest, WhatTheDriverRefusesIsReportedAndTheRestCanBeHadAgain) {
  Start();
  sim_->FailNthCall(EntryPoint::mem_create, 4, abi::kUnknown);
  EXPECT_EQ(Prewarm(MiB(20)).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(stats().reserved.current, MiB(6));
  EXPECT_EQ(Prewarm(MiB(20)), absl::OkStatus());
  EXPECT_EQ(stats().reserved.current, MiB(20));
}

TEST_P(PrewarmTest, ADeviceThatIsNearlyFullStillGivesSmallerChunks) {
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = GiB(64);
  Start(config);
  sim_->SetTakenByOthers(DeviceOrdinal(0), GiB(63) + MiB(2));
  EXPECT_EQ(Prewarm(GiB(1)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().reserved.current, MiB(1022));
  EXPECT_LT(stats().chunks_created, 300u) << "most of it in large chunks";
}

TEST_P(PrewarmTest, TheSoftLimitWarns) {
  std::vector<Bytes> warnings;
  AllocatorOptions options;
  options.soft_limit = MiB(10);
  options.on_soft_limit = [&](Bytes reserved, Bytes) {
    warnings.push_back(reserved);
    // No lock is held, and the thread does not wait for itself.
    EXPECT_EQ(allocator_->WaitForPrewarm().code(), absl::StatusCode::kFailedPrecondition);
    const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(MiB(16), StreamHandle());
    EXPECT_TRUE(block.ok()) << block.status();
  };
  Start(SmallDevice(), options);
  EXPECT_EQ(Prewarm(MiB(20)), absl::OkStatus());
  EXPECT_THAT(warnings, ElementsAre(MiB(12)));
  EXPECT_EQ(stats().prewarm_stalls.count, 0u);
}

TEST_P(PrewarmTest, NoContextOfTheCallerIsNeeded) {
  sim::Config config = SmallDevice();
  config.quirks.vmm_needs_context = true;
  Start(config);
  EXPECT_EQ(sim_->driver().ctx_set_current(nullptr), abi::kSuccess);
  EXPECT_EQ(Prewarm(MiB(20)), absl::OkStatus());
  EXPECT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
}

INSTANTIATE_TEST_SUITE_P(Modes, PrewarmTest, ::testing::Values(PrewarmMode::kBlocking, PrewarmMode::kBackground),
                         [](const ::testing::TestParamInfo<PrewarmMode>& info) {
                           return info.param == PrewarmMode::kBlocking ? "blocking" : "background";
                         });

}  // namespace
}  // namespace expanse

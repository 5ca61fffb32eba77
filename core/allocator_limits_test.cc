// Scenarios of limits: hard and soft ones, changed while memory is held, and the budgets of the process.

#include <limits>
#include <string>
#include <vector>

#include "core/allocator_fixture.h"
#include "core/process_budgets.h"

namespace expanse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status CreationStatus(const Driver& driver, const AllocatorOptions& options) {
  return Allocator::Create(driver, options).status();
}

TEST_F(AllocatorTest, TheLimitMayBeAPartOfTheDevice) {
  AllocatorOptions options;
  options.limit_fraction = 0.5;
  Start(SmallDevice(), options);
  Alloc(MiB(32));
  EXPECT_THAT(std::string(AllocFails(MiB(2)).message()), HasSubstr("limit 32.00 MiB"));
}

TEST_F(AllocatorTest, LimitsThatMakeNoSenseAreRefusedByName) {
  Start();
  for (const double fraction : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    AllocatorOptions options;
    options.limit_fraction = fraction;
    const absl::Status status = CreationStatus(sim_->driver(), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << fraction;
    EXPECT_THAT(std::string(status.message()), HasSubstr("limit_fraction"));
  }
  AllocatorOptions options;
  options.limit_fraction = 0.001;  // of 64 MiB, no chunk
  EXPECT_THAT(
      std::string(CreationStatus(sim_->driver(), options).message()),
      testing::AllOf(HasSubstr("limit_fraction is 0.001, which is "), HasSubstr("expected at least one chunk")));
  options.limit_fraction = 0.5;
  options.limit = MiB(32);
  EXPECT_THAT(std::string(CreationStatus(sim_->driver(), options).message()), HasSubstr("one of them at most"));
  options = AllocatorOptions();
  options.soft_limit = MiB(1);
  EXPECT_THAT(std::string(CreationStatus(sim_->driver(), options).message()), HasSubstr("expected a callback"));
  EXPECT_EQ(allocator_->SetLimit(KiB(1)).code(), absl::StatusCode::kInvalidArgument);
  Alloc(MiB(64));
}

TEST_F(AllocatorTest, ALowerLimitGivesIdleMemoryBackAndHoldsFromThenOn) {
  Start();
  const DeviceAddress a = Alloc(MiB(20));
  const DeviceAddress b = Alloc(MiB(30));
  Free(b);
  EXPECT_EQ(allocator_->SetLimit(MiB(40)), absl::OkStatus());
  Check();
  EXPECT_EQ(stats().reserved.current, MiB(40));
  EXPECT_FALSE(AllocFails(MiB(22)).ok());
  // Below what is in use: all that is idle goes, and nothing is created.
  EXPECT_EQ(allocator_->SetLimit(MiB(10)), absl::OkStatus());
  Check();
  EXPECT_EQ(stats().reserved.current, MiB(20));
  EXPECT_FALSE(AllocFails(MiB(2)).ok());
  Free(a);
  Alloc(MiB(20));  // what is held serves
  EXPECT_EQ(allocator_->SetLimit(std::nullopt), absl::OkStatus());
  Alloc(MiB(44));
}

TEST_F(AllocatorTest, TheSoftLimitWarnsOncePerCrossingAndRefusesNothing) {
  std::vector<Bytes> warnings;
  AllocatorOptions options;
  options.soft_limit = MiB(30);
  options.on_soft_limit = [&](Bytes reserved, Bytes soft_limit) {
    EXPECT_EQ(soft_limit, MiB(30));
    warnings.push_back(reserved);
    EXPECT_EQ(allocator_->CheckInvariants(), absl::OkStatus());  // no lock is held
  };
  Start(SmallDevice(), options);
  const DeviceAddress a = Alloc(MiB(30));
  EXPECT_TRUE(warnings.empty());
  const DeviceAddress b = Alloc(MiB(4));
  EXPECT_THAT(warnings, ElementsAre(MiB(34)));
  const DeviceAddress c = Alloc(MiB(10));
  Free(a);
  Free(b);
  Alloc(MiB(12));
  EXPECT_EQ(warnings.size(), 1u) << "it was above all the time";
  Free(c);
  ASSERT_TRUE(allocator_->Trim(Bytes()).ok());
  Alloc(MiB(40));
  EXPECT_THAT(warnings, ElementsAre(MiB(34), MiB(52)));
}

TEST_F(AllocatorTest, TrimmingAPoolEndsACrossingOfTheSoftLimit) {
  Start();
  std::vector<Bytes> warnings;
  ASSERT_EQ(allocator_->SetSoftLimit(MiB(10), [&warnings](Bytes reserved, Bytes) { warnings.push_back(reserved); }),
            absl::OkStatus());
  Free(Alloc(MiB(12)));
  EXPECT_THAT(warnings, testing::ElementsAre(MiB(12)));
  ASSERT_TRUE(allocator_->TrimPool(PoolId(), MiB(2)).ok());
  Alloc(MiB(12));
  EXPECT_THAT(warnings, testing::ElementsAre(MiB(12), MiB(12)));
}

TEST_F(AllocatorTest, ASoftLimitSetBelowWhatIsHeldWarnsAtOnce) {
  Start();
  Alloc(MiB(10));
  int warned = 0;
  EXPECT_EQ(allocator_->SetSoftLimit(MiB(4), [&](Bytes, Bytes) { ++warned; }), absl::OkStatus());
  EXPECT_EQ(warned, 1);
  EXPECT_EQ(allocator_->SetSoftLimit(MiB(10), [&](Bytes, Bytes) { ++warned; }), absl::OkStatus());
  EXPECT_EQ(warned, 1);
  EXPECT_EQ(allocator_->SetSoftLimit(std::nullopt, nullptr), absl::OkStatus());
  Alloc(MiB(20));
  EXPECT_EQ(warned, 1);
}

TEST_F(AllocatorTest, LargeChunksNeedFewHandles) {
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = GiB(80);
  Start(config);
  const ProcessBudgets before = GetProcessBudgets();
  ASSERT_EQ(SetProcessHandleBudget(before.handles_taken + 4), absl::OkStatus());
  const DeviceAddress a = Alloc(MiB(64));
  EXPECT_EQ(stats().chunks_created, 4u) << "of 16 MiB";
  EXPECT_THAT(std::string(AllocFails(MiB(2)).message()), HasSubstr("budgets left: 0 handles"));
  ASSERT_EQ(SetProcessHandleBudget(before.handles_limit), absl::OkStatus());
  Free(a);
}

TEST_F(AllocatorTest, TheBudgetsOfTheProcessCanBeReadAndSet) {
  Start();
  const ProcessBudgets before = GetProcessBudgets();
  const DeviceAddress a = Alloc(MiB(8));
  EXPECT_EQ(GetProcessBudgets().handles_taken, before.handles_taken + 4);
  EXPECT_GE(before.addresses_taken, stats().address_space.current);
  EXPECT_EQ(SetProcessHandleBudget(before.handles_taken + 5), absl::OkStatus());
  EXPECT_THAT(std::string(AllocFails(MiB(4)).message()), HasSubstr("budgets left: 1 handles"));
  EXPECT_EQ(SetProcessHandleBudget(before.handles_taken + 1), absl::OkStatus()) << "less than what is taken";
  EXPECT_FALSE(AllocFails(MiB(2)).ok());
  EXPECT_EQ(SetProcessHandleBudget(0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SetProcessAddressBudget(Bytes()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SetProcessAddressBudget(TiB(129)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SetProcessAddressBudget(before.addresses_limit), absl::OkStatus());
  EXPECT_EQ(SetProcessHandleBudget(before.handles_limit), absl::OkStatus());
  EXPECT_EQ(GetProcessBudgets().handles_limit, before.handles_limit);
  Alloc(MiB(4));
  Free(a);
}

}  // namespace
}  // namespace expanse

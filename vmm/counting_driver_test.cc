#include "vmm/counting_driver.h"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "vmm/driver.h"

namespace expanse {
namespace {

uint64_t Calls(const CountingDriver& driver, EntryPoint entry_point) {
  return driver.counts().calls[static_cast<int>(entry_point)];
}

Driver TwoFunctions() {
  Driver driver;
  driver.mem_release = [](abi::MemHandle handle) { return handle == 0 ? abi::kInvalidValue : abi::kSuccess; };
  driver.ctx_synchronize = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return abi::kSuccess;
  };
  return driver;
}

TEST(CountingDriver, PassesCallsOnAndCountsThem) {
  auto counting = CountingDriver::Create(TwoFunctions());
  ASSERT_TRUE(counting.ok());
  const Driver driver = (*counting)->driver();
  EXPECT_EQ(driver.mem_release(7), abi::kSuccess);
  EXPECT_EQ(driver.mem_release(0), abi::kInvalidValue);
  EXPECT_EQ(driver.ctx_synchronize(), abi::kSuccess);
  EXPECT_EQ(Calls(**counting, EntryPoint::mem_release), 2u);
  EXPECT_EQ(Calls(**counting, EntryPoint::ctx_synchronize), 1u);
  EXPECT_EQ((*counting)->counts().TotalCalls(), 3u);
}

TEST(CountingDriver, MeasuresTimeInsideTheDriver) {
  auto counting = CountingDriver::Create(TwoFunctions());
  ASSERT_TRUE(counting.ok());
  ASSERT_EQ((*counting)->driver().ctx_synchronize(), abi::kSuccess);
  const DriverCallCounts counts = (*counting)->counts();
  EXPECT_GE(counts.measured[static_cast<int>(EntryPoint::ctx_synchronize)], std::chrono::milliseconds(2));
  EXPECT_EQ(counts.TotalMeasured(), counts.measured[static_cast<int>(EntryPoint::ctx_synchronize)]);
}

TEST(CountingDriver, MissingEntryPointsStayMissing) {
  auto counting = CountingDriver::Create(TwoFunctions());
  ASSERT_TRUE(counting.ok());
  EXPECT_EQ((*counting)->driver().mem_create, nullptr);
  EXPECT_NE((*counting)->driver().mem_release, nullptr);
}

TEST(CountingDriver, OneIsAliveAtATimeAndEachStartsFromZero) {
  auto first = CountingDriver::Create(TwoFunctions());
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)->driver().mem_release(7), abi::kSuccess);
  EXPECT_TRUE(absl::IsFailedPrecondition(CountingDriver::Create(TwoFunctions()).status()));
  EXPECT_EQ((*first)->counts().TotalCalls(), 1u);  // the refused one changed nothing
  first->reset();
  auto second = CountingDriver::Create(TwoFunctions());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->counts().TotalCalls(), 0u);
}

TEST(CountingDriver, ResetSetsEveryFigureToZero) {
  auto counting = CountingDriver::Create(TwoFunctions());
  ASSERT_TRUE(counting.ok());
  ASSERT_EQ((*counting)->driver().ctx_synchronize(), abi::kSuccess);
  (*counting)->Reset();
  EXPECT_EQ((*counting)->counts().TotalCalls(), 0u);
  EXPECT_EQ((*counting)->counts().TotalMeasured(), std::chrono::nanoseconds(0));
}

TEST(CountingDriver, LosesNoCallOfConcurrentThreads) {
  auto counting = CountingDriver::Create(TwoFunctions());
  ASSERT_TRUE(counting.ok());
  constexpr int kThreads = 4;
  constexpr int kCalls = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([driver = (*counting)->driver()] {
      for (int i = 0; i < kCalls; ++i) (void)driver.mem_release(7);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Calls(**counting, EntryPoint::mem_release), uint64_t{kThreads} * kCalls);
}

}  // namespace
}  // namespace expanse

#include "vmm/counting_driver.h"

#include <chrono>
#include <thread>
#include <vector>

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
  CountingDriver counting(TwoFunctions());
  const Driver driver = counting.driver();
  EXPECT_EQ(driver.mem_release(7), abi::kSuccess);
  EXPECT_EQ(driver.mem_release(0), abi::kInvalidValue);
  EXPECT_EQ(driver.ctx_synchronize(), abi::kSuccess);
  EXPECT_EQ(Calls(counting, EntryPoint::mem_release), 2u);
  EXPECT_EQ(Calls(counting, EntryPoint::ctx_synchronize), 1u);
  EXPECT_EQ(counting.counts().TotalCalls(), 3u);
}

TEST(CountingDriver, MeasuresTimeInsideTheDriver) {
  CountingDriver counting(TwoFunctions());
  ASSERT_EQ(counting.driver().ctx_synchronize(), abi::kSuccess);
  const DriverCallCounts counts = counting.counts();
  EXPECT_GE(counts.measured[static_cast<int>(EntryPoint::ctx_synchronize)], std::chrono::milliseconds(2));
  EXPECT_EQ(counts.TotalMeasured(), counts.measured[static_cast<int>(EntryPoint::ctx_synchronize)]);
}

TEST(CountingDriver, MissingEntryPointsStayMissing) {
  CountingDriver counting(TwoFunctions());
  EXPECT_EQ(counting.driver().mem_create, nullptr);
  EXPECT_NE(counting.driver().mem_release, nullptr);
}

TEST(CountingDriver, EachCountsItsOwnCallsAndThoseOfTheOnesThatWrapIt) {
  CountingDriver outer(TwoFunctions());
  const CountingDriver first(outer.driver());
  const CountingDriver second(outer.driver());
  EXPECT_EQ(first.driver().mem_release(7), abi::kSuccess);
  EXPECT_EQ(second.driver().mem_release(7), abi::kSuccess);
  EXPECT_EQ(second.driver().ctx_synchronize(), abi::kSuccess);
  EXPECT_EQ(outer.driver().mem_release(7), abi::kSuccess);
  EXPECT_EQ(first.counts().TotalCalls(), 1u);
  EXPECT_EQ(second.counts().TotalCalls(), 2u);
  EXPECT_EQ(Calls(outer, EntryPoint::mem_release), 3u);
  EXPECT_EQ(Calls(outer, EntryPoint::ctx_synchronize), 1u);
  outer.Reset();
  EXPECT_EQ(second.counts().TotalCalls(), 2u);
}

TEST(CountingDriver, AFunctionThatIsReplacedIsNotCounted) {
  const CountingDriver counting(TwoFunctions());
  Driver driver = counting.driver();
  driver.mem_release = [](abi::MemHandle) { return abi::kInvalidContext; };
  EXPECT_EQ(driver.mem_release(7), abi::kInvalidContext);
  EXPECT_EQ(counting.counts().TotalCalls(), 0u);
}

TEST(CountingDriver, ResetSetsEveryFigureToZero) {
  CountingDriver counting(TwoFunctions());
  ASSERT_EQ(counting.driver().ctx_synchronize(), abi::kSuccess);
  counting.Reset();
  EXPECT_EQ(counting.counts().TotalCalls(), 0u);
  EXPECT_EQ(counting.counts().TotalMeasured(), std::chrono::nanoseconds(0));
}

TEST(CountingDriver, LosesNoCallOfConcurrentThreads) {
  CountingDriver counting(TwoFunctions());
  constexpr int kThreads = 4;
  constexpr int kCalls = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([driver = counting.driver()] {
      for (int i = 0; i < kCalls; ++i) (void)driver.mem_release(7);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Calls(counting, EntryPoint::mem_release), uint64_t{kThreads} * kCalls);
}

}  // namespace
}  // namespace expanse

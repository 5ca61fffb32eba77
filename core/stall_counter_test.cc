#include "core/stall_counter.h"

#include <thread>

#include "gtest/gtest.h"

namespace expanse {
namespace {

struct Guarded {
  Mutex mu;
  StallCounter stalls ABSL_GUARDED_BY(mu);
};

TEST(StallCountingLock, AFreeMutexIsNoStall) {
  Guarded guarded;
  for (int i = 0; i < 3; ++i) {
    const StallCountingLock lock(guarded.mu, &guarded.stalls);
    EXPECT_EQ(guarded.stalls.stalls().count, 0u);
  }
}

TEST(StallCountingLock, WaitingForAnotherThreadIsOne) {
  Guarded guarded;
  Stalls stalls;
  // How long the other thread takes to arrive is not known, so the mutex is held until it has been waited for.
  for (auto hold = std::chrono::milliseconds(1); stalls.count == 0; hold *= 2) {
    std::thread other;
    {
      const MutexLock lock(guarded.mu);
      other = std::thread([&guarded] { const StallCountingLock counted(guarded.mu, &guarded.stalls); });
      std::this_thread::sleep_for(hold);
    }
    other.join();
    const MutexLock lock(guarded.mu);
    stalls = guarded.stalls.stalls();
  }
  EXPECT_EQ(stalls.count, 1u);
  EXPECT_GT(stalls.time, std::chrono::nanoseconds(0));
}

}  // namespace
}  // namespace expanse

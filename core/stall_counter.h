// Counts how often and how long callers waited.

#ifndef EXPANSE_CORE_STALL_COUNTER_H_
#define EXPANSE_CORE_STALL_COUNTER_H_

#include <chrono>

#include "core/stats.h"
#include "vmm/mutex.h"

namespace expanse {

// Guarded by whoever owns it. Adding reads the clock twice, which is little against any wait.
class StallCounter {
 public:
  using Clock = std::chrono::steady_clock;

  // A wait that began then is over.
  void AddSince(Clock::time_point begin) {
    ++stalls_.count;
    stalls_.time += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
  }
  [[nodiscard]] const Stalls& stalls() const { return stalls_; }

 private:
  Stalls stalls_;
};

// Holds a mutex, and counts in what it guards, if another thread had it first. A free mutex costs nothing more than it
// does without. The counter is a pointer because clang takes a reference for a use before the mutex is held.
class ABSL_SCOPED_LOCKABLE StallCountingLock {
 public:
  StallCountingLock(Mutex& mu, StallCounter* stalls) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) {
    if (mu.TryLock()) return;
    const StallCounter::Clock::time_point begin = StallCounter::Clock::now();
    mu.Lock();
    stalls->AddSince(begin);
  }
  ~StallCountingLock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }
  StallCountingLock(const StallCountingLock&) = delete;
  StallCountingLock& operator=(const StallCountingLock&) = delete;

 private:
  Mutex& mu_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_STALL_COUNTER_H_

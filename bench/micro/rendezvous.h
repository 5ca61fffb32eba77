// Where the threads of one benchmark run meet.

#ifndef EXPANSE_BENCH_MICRO_RENDEZVOUS_H_
#define EXPANSE_BENCH_MICRO_RENDEZVOUS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace expanse::bench {

// A barrier that can be used again and again by the same number of threads.
class Rendezvous {
 public:
  // Blocks until `threads` threads have called this, then runs the last one's `action` before any of them goes on. All
  // must give the same `threads`.
  void Meet(int threads, const std::function<void()>& action) {
    std::unique_lock<std::mutex> lock(mu_);
    const uint64_t round = round_;
    if (++arrived_ < threads) {
      all_here_.wait(lock, [this, round] { return round_ != round; });
      return;
    }
    action();
    arrived_ = 0;
    ++round_;
    all_here_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable all_here_;
  int arrived_ = 0;
  uint64_t round_ = 0;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_MICRO_RENDEZVOUS_H_

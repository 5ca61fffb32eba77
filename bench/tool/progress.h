// A progress bar on the standard error.

#ifndef EXPANSE_BENCH_TOOL_PROGRESS_H_
#define EXPANSE_BENCH_TOOL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace expanse::tool {

// Shows itself only where the standard error is a terminal, and only once a second has passed, so that short runs and
// logs stay clean. Takes its line away again when it is destroyed. Not thread-safe.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  const std::string label_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_;
  bool visible_ = false;
};

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_PROGRESS_H_

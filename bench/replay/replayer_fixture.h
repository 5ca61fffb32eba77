// Replays rows with scripted allocators.

#ifndef EXPANSE_BENCH_REPLAY_REPLAYER_FIXTURE_H_
#define EXPANSE_BENCH_REPLAY_REPLAYER_FIXTURE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/replay/replayer.h"
#include "bench/replay/test_traces.h"
#include "gtest/gtest.h"
#include "vmm/units.h"

namespace expanse::bench {

inline constexpr Bytes kArena = MiB(64);

inline ReplayOptions Options() {
  ReplayOptions options;
  options.allocator = "scripted";
  options.capacity = GiB(1);
  options.check_invariants = true;
  return options;
}

// Runs a trace that is expected to replay without an error.
inline ReplayResult ReplayRows(const std::string& rows, const ReplayOptions& options, const AllocatorFactory& factory) {
  absl::StatusOr<ReplayResult> result = ReplayWith(TraceOf(rows), options, factory);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : ReplayResult{};
}

// The message of one that is expected not to.
inline std::string Error(const std::string& rows, const ReplayOptions& options, const AllocatorFactory& factory) {
  absl::StatusOr<ReplayResult> result = ReplayWith(TraceOf(rows), options, factory);
  EXPECT_FALSE(result.ok());
  return std::string(result.status().message());
}

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_REPLAYER_FIXTURE_H_

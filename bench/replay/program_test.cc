// Lag: whether an allocator that reuses memory too early is caught, and one that does not is left alone.

#include "bench/replay/program.h"

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/replay/replayer.h"
#include "bench/replay/test_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kArena = MiB(64);

ReplayOptions Options(uint64_t lag) {
  ReplayOptions options;
  options.allocator = "scripted";
  options.capacity = GiB(1);
  options.lag = lag;
  return options;
}

template <typename Allocator>
ReplayResult ReplayRows(const std::string& rows, uint64_t lag) {
  absl::StatusOr<ReplayResult> result = ReplayWith(TraceOf(rows), Options(lag), Scripted<Allocator>(kArena, kArena));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : ReplayResult{};
}

// On one stream, memory may be used again at once: its order covers it.
TEST(Lag, ReuseOnTheSameStreamIsNoHazard) {
  EXPECT_EQ(ReplayRows<CarelessAllocator>("a,1,4096,1\nf,1,,1\na,2,4096,1\nf,2,,1\n", 10).hazards, 0u);
}

TEST(Lag, ReuseOnAnotherStreamBeforeTheWorkCompletesIsAHazard) {
  const ReplayResult result = ReplayRows<CarelessAllocator>("a,1,4096,1\nf,1,,1\na,2,4096,2\nf,2,,2\n", 10);
  EXPECT_GT(*result.hazards, 0u);
  EXPECT_FALSE(result.hazard_descriptions.empty());
  EXPECT_THAT(result.failure_message, HasSubstr("event 2"));
  EXPECT_FALSE(result.out_of_memory);
}

// Uses the arena's first bytes again once the stream that last freed them is seen to be idle, and counts how often.
class AskingAllocator final : public ScriptedAllocator {
 public:
  using ScriptedAllocator::ScriptedAllocator;
  absl::Status Free(DeviceAddress address, StreamHandle stream) override {
    freeing_ = stream;
    return ScriptedAllocator::Free(address, stream);
  }

 private:
  DeviceAddress Place(Bytes size) override {
    const DeviceAddress fresh = ScriptedAllocator::Place(size);
    if (!freeing_.has_value()) return fresh;
    if (driver_.stream_query(static_cast<abi::Stream>(freeing_->raw())) != abi::kSuccess) return fresh;
    figures_.chunks_moved = figures_.chunks_moved.value_or(0) + 1;
    return base();
  }
  std::optional<StreamHandle> freeing_;
};

TEST(Lag, WorkIsSeenToCompleteThatManyEventsAfterTheFree) {
  // Asked by the event after the free.
  const std::string rows = "a,1,4096,1\nf,1,,1\na,2,4096,2\nf,2,,2\n";
  EXPECT_EQ(ReplayRows<AskingAllocator>(rows, 1).chunks_moved, 1u);
  EXPECT_EQ(ReplayRows<AskingAllocator>(rows, 2).chunks_moved, std::nullopt) << "one event after the free is too early";
  const std::string later = "a,9,4096,3\na,1,4096,1\nf,1,,1\nf,9,,1\na,2,4096,2\n";
  // Both frees are on stream 1: the last work ends one event after the second free, with a lag of 1.
  EXPECT_EQ(ReplayRows<AskingAllocator>(later, 1).chunks_moved, 1u);
  EXPECT_EQ(ReplayRows<AskingAllocator>(later, 2).chunks_moved, std::nullopt);
  for (const std::string& trace : {rows, later}) {
    for (const uint64_t lag : {0u, 1u, 2u, 3u}) EXPECT_EQ(ReplayRows<AskingAllocator>(trace, lag).hazards, 0u);
  }
}

TEST(Lag, CompletionThatNobodySawOrdersNothing) {
  // The work of the free is over by then, but the allocator never asked.
  EXPECT_GT(*ReplayRows<CarelessAllocator>("a,1,4096,1\nf,1,,1\na,2,4096,2\n", 1).hazards, 0u);
  EXPECT_EQ(ReplayRows<CarelessAllocator>("a,1,4096,1\nf,1,,1\na,2,4096,2\n", 0).hazards, 0u)
      << "without lag no work is queued";
}

TEST(Lag, AnAllocatorThatForgetsAnotherStreamsUseIsCaught) {
  // The block's own stream would be safe; stream 2 still works on it.
  EXPECT_GT(*ReplayRows<CarelessAllocator>("a,1,4096,1\nu,1,,2\nf,1,,1\na,2,4096,1\n", 10).hazards, 0u);
}

TEST(Lag, AnAllocatorThatForgetsTheFreeingStreamIsCaught) {
  EXPECT_GT(*ReplayRows<CarelessAllocator>("a,1,4096,1\nf,1,,2\na,2,4096,1\n", 10).hazards, 0u);
}

TEST(Lag, UsesOfOneBlockOnSeveralStreamsAreTheProgramsAndInOrder) {
  const std::string rows = "a,1,4096,1\nu,1,,2\nu,1,,3\nk,1,100,2\nk,1,100,1\nu,1,,2\nf,1,,3\na,2,4096,0\nf,2,,1\n";
  EXPECT_EQ(ReplayRows<ScriptedAllocator>(rows, 10).hazards, 0u);
  EXPECT_EQ(ReplayRows<ScriptedAllocator>(rows, 0).hazards, 0u);
}

TEST(Work, ReuseUnderQueuedWorkIsAHazardWithoutLagToo) {
  EXPECT_GT(*ReplayRows<CarelessAllocator>("a,1,4096,1\nk,1,1000000,1\nf,1,,1\na,2,4096,2\nk,2,10,2\n", 0).hazards, 0u);
  EXPECT_EQ(
      ReplayRows<CarelessAllocator>("a,1,4096,1\nk,1,1000000,1\nf,1,,1\nw,,,1\na,2,4096,2\nk,2,10,2\n", 0).hazards, 0u)
      << "the host waited";
}

// Blocks of all sizes on several streams, used, freed and worked on across them; the seed decides.
std::string RandomRows(uint64_t seed, int events) {
  std::mt19937_64 random(seed);
  std::string rows;
  std::vector<std::pair<int, int>> live;  // id, stream
  for (int i = 0; i < events; ++i) {
    if (live.size() < 4 || (live.size() < 40 && random() % 2 == 0)) {
      const int stream = static_cast<int>(random() % 3);
      const uint64_t bytes = 1 + (random() % 4 == 0 ? random() % (24 << 20) : random() % 100000);
      absl::StrAppend(&rows, "a,", i, ",", bytes, ",", stream, "\n");
      live.emplace_back(i, stream);
      continue;
    }
    const size_t victim = random() % live.size();
    const auto [id, stream] = live[victim];
    if (random() % 3 == 0) absl::StrAppend(&rows, "u,", id, ",,", random() % 3, "\n");
    absl::StrAppend(&rows, "f,", id, ",,", random() % 4 == 0 ? static_cast<int>(random() % 3) : stream, "\n");
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
  }
  return rows;
}

TEST(Lag, NoAllocatorOfTheToolBreaksTheRules) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const Trace trace = TraceOf(RandomRows(seed, 1500));
    for (const std::string_view allocator : BenchAllocatorNames()) {
      for (const uint64_t lag : {1u, 7u, 50u}) {
        ReplayOptions options = Options(lag);
        options.allocator = std::string(allocator);
        // Tight, so that memory is moved and given back while work is queued.
        options.capacity = RoundUp(Summarize(trace).peak_live + MiB(40), MiB(2));
        options.keep_going = true;
        absl::StatusOr<ReplayResult> result = Replay(trace, options);
        ASSERT_TRUE(result.ok()) << "seed " << seed << ", lag " << lag << ": " << result.status();
        EXPECT_EQ(result->hazards, 0u) << allocator << ", seed " << seed << ", lag " << lag << ": "
                                       << result->failure_message;
      }
    }
  }
}

TEST(Touch, NoAllocatorOfTheToolMixesBlocksUp) {
  const Trace trace = TraceOf(RandomRows(4, 1500));
  for (const std::string_view allocator : BenchAllocatorNames()) {
    ReplayOptions options = Options(0);
    options.allocator = std::string(allocator);
    options.capacity = RoundUp(Summarize(trace).peak_live + MiB(40), MiB(2));
    options.keep_going = true;
    options.touch = true;
    options.seed = 4;
    absl::StatusOr<ReplayResult> result = Replay(trace, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->hazards, 0u) << allocator;
  }
}

}  // namespace
}  // namespace expanse::bench

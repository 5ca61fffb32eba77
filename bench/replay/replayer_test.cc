// What a replay asks of the allocator, and when it stops.

#include "bench/replay/replayer.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/replay/replayer_fixture.h"
#include "bench/replay/test_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Replayer, TellsTheAllocatorWhatTheTraceSays) {
  std::vector<std::string> log;
  const ReplayResult result = ReplayRows("m,step0,,\na,7,100,0\na,8,200,3\nu,7,,3\nf,7,,0\nf,8,,0\na,7,300,3\n",
                                         Options(), Scripted<ScriptedAllocator>(kArena, kArena, &log));
  EXPECT_THAT(log, ElementsAre("a 100 s0", "a 200 s1", "u 100 s1", "f 100 s0", "f 200 s0", "a 300 s1"));
  EXPECT_EQ(result.events, 5u) << "only allocations and frees";
  EXPECT_EQ(result.peak_live, Bytes(300));
  EXPECT_EQ(result.allocator, "scripted");
  EXPECT_EQ(result.capacity, GiB(1));
  EXPECT_FALSE(result.out_of_memory);
  EXPECT_EQ(result.failed_at_event, std::nullopt);
  EXPECT_EQ(result.hazards, 0u);
}

TEST(Replayer, StreamZeroIsTheLegacyStreamAndOthersAreStreamsOfTheirOwn) {
  struct Recorder final : ScriptedAllocator {
    using ScriptedAllocator::ScriptedAllocator;
    absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream) override {
      EXPECT_EQ(stream.raw() == nullptr, size == Bytes(1)) << "stream 0, and it alone, is null";
      return ScriptedAllocator::Allocate(size, stream);
    }
  };
  (void)ReplayRows("a,1,1,0\na,2,2,1\na,3,2,9\n", Options(), Scripted<Recorder>(kArena, kArena));
}

TEST(Replayer, StopsAtTheFirstRequestThatFails) {
  std::vector<std::string> log;
  const ReplayResult result = ReplayRows("m,step0,,\na,1,600,0\nm,step1,,\na,2,500,0\nf,1,,0\na,3,1,0\n", Options(),
                                         Scripted<ScriptedAllocator>(kArena, Bytes(1000), &log));
  EXPECT_THAT(log, ElementsAre("a 600 s0", "a 500 s0"));
  EXPECT_TRUE(result.out_of_memory);
  EXPECT_EQ(result.failed_at_event, 1u);
  EXPECT_EQ(result.failed_request, Bytes(500));
  EXPECT_EQ(result.failed_in_mark, "step1");
  EXPECT_EQ(result.unused_at_failure, kArena - Bytes(600));
  EXPECT_EQ(result.failed_allocations, 1u);
  EXPECT_EQ(result.failure_message, "over the budget");
  EXPECT_EQ(result.events, 4u) << "what the trace holds, reached or not";
}

TEST(Replayer, KeepsGoingWithoutTheBlocksThatFailed) {
  ReplayOptions options = Options();
  options.keep_going = true;
  std::vector<std::string> log;
  const ReplayResult result =
      ReplayRows("a,1,600,0\na,2,500,0\nu,2,,1\nk,2,10,0\nf,2,,0\nf,1,,0\na,2,700,0\na,3,400,0\n", options,
                 Scripted<ScriptedAllocator>(kArena, Bytes(1000), &log));
  EXPECT_THAT(log, ElementsAre("a 600 s0", "a 500 s0", "f 600 s0", "a 700 s0", "a 400 s0"));
  EXPECT_EQ(result.failed_allocations, 2u);
  EXPECT_EQ(result.failed_at_event, 1u) << "the first";
  EXPECT_EQ(result.failed_in_mark, std::nullopt);
  EXPECT_EQ(result.peak_live, Bytes(700));
}

TEST(Replayer, RetriesOutOfMemoryMarksOnlyWhenAsked) {
  const std::string rows = "a,1,600,0\nm,oom_300,,\nm,oom_,,\nm,oom_12x,,\nm,oom_0,,\na,2,100,0\n";
  std::vector<std::string> log;
  (void)ReplayRows(rows, Options(), Scripted<ScriptedAllocator>(kArena, Bytes(1000), &log));
  EXPECT_THAT(log, ElementsAre("a 600 s0", "a 100 s0"));

  ReplayOptions options = Options();
  options.retry_oom = true;
  log.clear();
  ReplayResult result = ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, Bytes(1000), &log));
  EXPECT_THAT(log, ElementsAre("a 600 s0", "a 300 s0", "f 300 s0", "a 100 s0"));
  EXPECT_EQ(result.events, 2u);
  EXPECT_EQ(result.peak_live, Bytes(900));
  EXPECT_FALSE(result.out_of_memory);

  result = ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, Bytes(899)));
  EXPECT_TRUE(result.out_of_memory);
  EXPECT_EQ(result.failed_at_event, 1u);
  EXPECT_EQ(result.failed_request, Bytes(300));
  EXPECT_EQ(result.failed_in_mark, "oom_300");
}

TEST(Replayer, RepeatsAndFreesWhatIsLiveInBetween) {
  ReplayOptions options = Options();
  options.repeat = 3;
  std::vector<std::string> log;
  const ReplayResult result = ReplayRows("m,s,,\na,1,100,0\na,2,200,1\nf,1,,0\n", options,
                                         Scripted<ScriptedAllocator>(kArena, Bytes(300), &log));
  EXPECT_THAT(log, ElementsAre("a 100 s0", "a 200 s1", "f 100 s0", "f 200 s1",  //
                               "a 100 s0", "a 200 s1", "f 100 s0", "f 200 s1",  //
                               "a 100 s0", "a 200 s1", "f 100 s0"));
  EXPECT_EQ(result.events, 9u);
  ASSERT_EQ(result.marks.size(), 3u);
  EXPECT_EQ(result.marks[1].event, 3u);
  EXPECT_EQ(result.marks[2].event, 6u);
}

TEST(Replayer, TouchPassesWhereBlocksAreTheirOwn) {
  ReplayOptions options = Options();
  options.touch = true;
  options.repeat = 2;
  const ReplayResult result = ReplayRows("a,1,5000000,0\na,2,1,1\na,3,130,0\nf,1,,0\na,4,4194304,0\n", options,
                                         Scripted<ScriptedAllocator>(kArena, kArena));
  EXPECT_EQ(result.peak_live, Bytes(5000131));
}

TEST(Replayer, AnAllocatorThatCannotBeMadeForLackOfMemoryRanOutAtOnce) {
  auto factory = [](const Driver&, const BenchAllocatorOptions&) -> absl::StatusOr<std::unique_ptr<BenchAllocator>> {
    return absl::ResourceExhaustedError("too small");
  };
  const ReplayResult result = ReplayRows("a,1,1,0\nf,1,,0\n", Options(), factory);
  EXPECT_TRUE(result.out_of_memory);
  EXPECT_EQ(result.failed_at_event, 0u);
  EXPECT_EQ(result.events, 2u);
  EXPECT_THAT(result.failure_message, HasSubstr("too small"));
}

}  // namespace
}  // namespace expanse::bench

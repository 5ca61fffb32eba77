#include "bench/replay/replayer.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/replay/test_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Bytes kArena = MiB(64);

ReplayOptions Options() {
  ReplayOptions options;
  options.allocator = "scripted";
  options.capacity = GiB(1);
  options.check_invariants = true;
  return options;
}

uint64_t Calls(const ReplayResult& result, EntryPoint entry_point) {
  return result.driver_calls[static_cast<int>(entry_point)];
}

// Runs a trace that is expected to replay without an error.
ReplayResult ReplayRows(const std::string& rows, const ReplayOptions& options, const AllocatorFactory& factory) {
  absl::StatusOr<ReplayResult> result = ReplayWith(TraceOf(rows), options, factory);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : ReplayResult{};
}

std::string Error(const std::string& rows, const ReplayOptions& options, const AllocatorFactory& factory) {
  absl::StatusOr<ReplayResult> result = ReplayWith(TraceOf(rows), options, factory);
  EXPECT_FALSE(result.ok());
  return std::string(result.status().message());
}

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

// Makes one driver call for each allocation.
class CallingAllocator final : public ScriptedAllocator {
 public:
  using ScriptedAllocator::ScriptedAllocator;

 private:
  DeviceAddress Place(Bytes size) override {
    size_t free = 0, total = 0;
    EXPECT_EQ(driver_.mem_get_info(&free, &total), abi::kSuccess);
    return ScriptedAllocator::Place(size);
  }
};

TEST(Replayer, CountsTheAllocatorsCallsFromMarkToMark) {
  const ReplayResult result = ReplayRows("a,1,1,0\nm,one,,\na,2,1,0\na,3,1,0\nm,two,,\nm,three,,\na,4,1,0\n", Options(),
                                         Scripted<CallingAllocator>(kArena, kArena));
  EXPECT_EQ(Calls(result, EntryPoint::mem_alloc), 1u);
  EXPECT_EQ(Calls(result, EntryPoint::mem_get_info), 4u);
  ASSERT_EQ(result.marks.size(), 3u);
  EXPECT_EQ(result.marks[0].label, "one");
  EXPECT_EQ(result.marks[0].driver_calls, 2u);
  EXPECT_EQ(result.marks[0].event, 1u);
  EXPECT_EQ(result.marks[1].driver_calls, 0u);
  EXPECT_EQ(result.marks[2].driver_calls, 1u);
  EXPECT_TRUE(result.modelled_driver_us.has_value());
  EXPECT_GT(*result.modelled_driver_us, 0);
  EXPECT_EQ(result.measured_driver_us, std::nullopt) << "nothing is measured on a simulator";
}

TEST(Replayer, DoesNotCountItsOwnCallsAndWaits) {
  ReplayOptions options = Options();
  const ReplayResult result = ReplayRows("a,1,4096,0\nk,1,500,0\nu,1,,1\nk,1,500,1\nw,,,1\nf,1,,0\n", options,
                                         Scripted<ScriptedAllocator>(kArena, kArena));
  for (const EntryPoint own : {EntryPoint::stream_synchronize, EntryPoint::event_create, EntryPoint::event_record,
                               EntryPoint::stream_wait_event, EntryPoint::stream_create, EntryPoint::ctx_set_current,
                               EntryPoint::primary_ctx_retain, EntryPoint::init}) {
    EXPECT_EQ(Calls(result, own), 0u) << SymbolName(own);
  }
  EXPECT_EQ(result.stall_us, 0.0) << "the program waited, not the allocator";
  EXPECT_EQ(result.hazards, 0u);
}

// Waits for its stream at each free.
class WaitingAllocator final : public ScriptedAllocator {
 public:
  using ScriptedAllocator::ScriptedAllocator;
  absl::Status Free(DeviceAddress address, StreamHandle stream) override {
    EXPECT_EQ(driver_.stream_synchronize(static_cast<abi::Stream>(stream.raw())), abi::kSuccess);
    return ScriptedAllocator::Free(address, stream);
  }
};

TEST(Replayer, CountsWhatTheAllocatorWaits) {
  const std::string rows = "a,1,4096,0\nk,1,5000,0\nf,1,,0\n";
  ReplayOptions options = Options();
  const ReplayResult result = ReplayRows(rows, options, Scripted<WaitingAllocator>(kArena, kArena));
  EXPECT_EQ(Calls(result, EntryPoint::stream_synchronize), 1u);
  ASSERT_TRUE(result.stall_us.has_value());
  EXPECT_GT(*result.stall_us, 4000) << "the work takes 5 ms of virtual time";
  EXPECT_LE(*result.stall_us, 5000);

  options.lag = 2;
  EXPECT_EQ(ReplayRows(rows, options, Scripted<WaitingAllocator>(kArena, kArena)).stall_us, std::nullopt)
      << "with lag, the clock counts events";
}

TEST(Replayer, RecordsATimelineOnlyWhenAsked) {
  ReplayOptions options = Options();
  const std::string rows = "a,1,100,0\na,2,50,0\nf,1,,0\n";
  EXPECT_TRUE(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena)).timeline.empty());
  options.record_timeline = true;
  const ReplayResult result = ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena));
  ASSERT_EQ(result.timeline.size(), 3u);
  EXPECT_EQ(result.timeline[1].live, Bytes(150));
  EXPECT_EQ(result.timeline[2].live, Bytes(50));
  EXPECT_EQ(result.timeline[2].event, 2u);
  EXPECT_EQ(result.timeline[2].reserved, kArena);
}

TEST(Replayer, TouchPassesWhereBlocksAreTheirOwn) {
  ReplayOptions options = Options();
  options.touch = true;
  options.repeat = 2;
  const ReplayResult result = ReplayRows("a,1,5000000,0\na,2,1,1\na,3,130,0\nf,1,,0\na,4,4194304,0\n", options,
                                         Scripted<ScriptedAllocator>(kArena, kArena));
  EXPECT_EQ(result.peak_live, Bytes(5000131));
}

TEST(Replayer, TouchFindsABlockThatAnotherOverwrote) {
  ReplayOptions options = Options();
  options.touch = true;
  // Both are live and at the same address: the second write destroys the first block.
  const std::string freed =
      Error("a,41,1000,0\na,42,1000,0\nf,42,,0\nf,41,,0\n", options, Scripted<CarelessAllocator>(kArena, kArena));
  EXPECT_THAT(freed, HasSubstr("block 41"));
  EXPECT_THAT(freed, HasSubstr("event 3"));
  EXPECT_THAT(freed, HasSubstr("corrupted at offset 0"));

  const std::string live = Error("a,41,1000,0\na,42,1000,0\n", options, Scripted<CarelessAllocator>(kArena, kArena));
  EXPECT_THAT(live, HasSubstr("block 41"));
  EXPECT_THAT(live, HasSubstr("live after event 2"));
}

TEST(Replayer, ErrorsSayWhereTheReplayWas) {
  struct Refusing final : ScriptedAllocator {
    using ScriptedAllocator::ScriptedAllocator;
    absl::Status Free(DeviceAddress, StreamHandle) override { return absl::InternalError("refused"); }
  };
  const std::string error = Error("m,step0,,\na,77,4096,0\nf,77,,0\n", Options(), Scripted<Refusing>(kArena, kArena));
  EXPECT_EQ(error, "scripted, test.csv, event 1, free of block 77 of 4.00 KiB (4096 bytes): refused");
}

TEST(Replayer, ReportsABrokenInvariant) {
  struct Inconsistent final : ScriptedAllocator {
    using ScriptedAllocator::ScriptedAllocator;
    absl::Status CheckInvariants() const override { return absl::InternalError("inconsistent"); }
  };
  ReplayOptions options = Options();
  EXPECT_THAT(Error("a,1,1,0\n", options, Scripted<Inconsistent>(kArena, kArena)), HasSubstr("inconsistent"));
  options.check_invariants = false;
  (void)ReplayRows("a,1,1,0\n", options, Scripted<Inconsistent>(kArena, kArena));
}

TEST(Replayer, ReportsWhatAnAllocatorLeavesBehind) {
  struct Leaking final : ScriptedAllocator {
    using ScriptedAllocator::ScriptedAllocator;
    DeviceAddress Place(Bytes size) override {
      abi::DevicePtr leaked = 0;
      EXPECT_EQ(driver_.mem_alloc(&leaked, 512), abi::kSuccess);
      return ScriptedAllocator::Place(size);
    }
  };
  EXPECT_THAT(Error("a,1,1,0\n", Options(), Scripted<Leaking>(kArena, kArena)),
              HasSubstr("not given back to the driver"));
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

TEST(Replayer, ReportsProgress) {
  std::string rows;
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&rows, "a,", i, ",1,0\nf,", i, ",,0\n");
  ReplayOptions options = Options();
  uint64_t last = 0;
  options.progress = [&last](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 6000u);
    EXPECT_GT(done, last);
    last = done;
  };
  (void)ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena));
  EXPECT_GT(last, 0u);
}

TEST(Replayer, MeasuresHostTimeOnlyWhenAskedAndWhereNothingFailed) {
  const std::string rows = "a,1,100,0\na,2,50,1\nu,1,,1\nk,1,10,1\nw,,,1\nf,1,,0\n";
  ReplayOptions options = Options();
  EXPECT_EQ(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena)).host_ns_per_pair, std::nullopt);
  options.measure_host_time = true;
  EXPECT_NE(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena)).host_ns_per_pair, std::nullopt);
  EXPECT_EQ(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, Bytes(120))).host_ns_per_pair, std::nullopt);
  options.lag = 1;
  EXPECT_EQ(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena)).host_ns_per_pair, std::nullopt);
}

TEST(Replayer, RefusesOptionsThatMakeNoSense) {
  ReplayOptions options = Options();
  options.repeat = 0;
  EXPECT_THAT(Error("a,1,1,0\n", options, Scripted<ScriptedAllocator>(kArena, kArena)), HasSubstr("repeat"));
  options.repeat = uint64_t{1} << 63;
  EXPECT_THAT(Error("a,1,1,0\nf,1,,0\n", options, Scripted<ScriptedAllocator>(kArena, kArena)),
              HasSubstr("repeat is 9223372036854775808, expected at most 2305843009213693952"));
  options.repeat = 5'000'001;
  EXPECT_THAT(Error("m,x,,\nm,y,,\n", options, Scripted<ScriptedAllocator>(kArena, kArena)),
              HasSubstr("repeat is 5000001, expected at most 5000000"));
  options.repeat = 1;
  options.lag = 1;
  options.cuda_device = DeviceOrdinal(0);
  EXPECT_THAT(Error("a,1,1,0\n", options, Scripted<ScriptedAllocator>(kArena, kArena)), HasSubstr("lag"));
}

TEST(Replayer, UnknownAllocatorsAreNamed) {
  ReplayOptions options = Options();
  options.allocator = "nothing";
  const absl::StatusOr<ReplayResult> result = Replay(TraceOf("a,1,1,0\n"), options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace expanse::bench

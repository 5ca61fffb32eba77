// What a replay counts and measures.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/replay/replayer_fixture.h"
#include "bench/replay/test_traces.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

uint64_t Calls(const ReplayResult& result, EntryPoint entry_point) {
  return result.driver_calls[static_cast<int>(entry_point)];
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

TEST(ReplayFigures, CountsTheAllocatorsCallsFromMarkToMark) {
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

TEST(ReplayFigures, DoesNotCountItsOwnCallsAndWaits) {
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

TEST(ReplayFigures, CountsWhatTheAllocatorWaits) {
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

TEST(ReplayFigures, RecordsATimelineOnlyWhenAsked) {
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

TEST(ReplayFigures, ReportsProgress) {
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

TEST(ReplayFigures, MeasuresHostTimeOnlyWhenAskedAndWhereNothingFailed) {
  const std::string rows = "a,1,100,0\na,2,50,1\nu,1,,1\nk,1,10,1\nw,,,1\nf,1,,0\n";
  ReplayOptions options = Options();
  EXPECT_EQ(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena)).host_ns_per_pair, std::nullopt);
  options.measure_host_time = true;
  EXPECT_NE(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena)).host_ns_per_pair, std::nullopt);
  EXPECT_EQ(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, Bytes(120))).host_ns_per_pair, std::nullopt);
  options.lag = 1;
  EXPECT_EQ(ReplayRows(rows, options, Scripted<ScriptedAllocator>(kArena, kArena)).host_ns_per_pair, std::nullopt);
}

}  // namespace
}  // namespace expanse::bench

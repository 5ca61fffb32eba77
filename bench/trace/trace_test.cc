#include "bench/trace/trace.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::HasSubstr;

// Two blocks, the first freed before a third, larger one comes on another stream.
Trace Small() {
  Trace trace;
  trace.name = "small";
  trace.ids = {10, 11, 10};
  trace.labels = {"step0"};
  trace.events = {{TraceOp::kAllocate, 0, 0, 1000}, {TraceOp::kAllocate, 0, 1, 512}, {TraceOp::kUse, 3, 1, 0},
                  {TraceOp::kFree, 0, 0, 0},        {TraceOp::kMark, 0, 0, 0},       {TraceOp::kAllocate, 2, 2, 1100},
                  {TraceOp::kWork, 2, 2, 50},       {TraceOp::kWait, 2, 0, 0},       {TraceOp::kFree, 2, 1, 0}};
  return trace;
}

std::string Problem(const Trace& trace) { return std::string(Validate(trace).message()); }

TEST(Summarize, CountsAndPeaks) {
  const TraceSummary s = Summarize(Small());
  EXPECT_EQ(s.events, 5u);
  EXPECT_EQ(s.allocations, 3u);
  EXPECT_EQ(s.frees, 2u);
  EXPECT_EQ(s.marks, 1u);
  EXPECT_EQ(s.uses, 1u);
  EXPECT_EQ(s.work, 1u);
  EXPECT_EQ(s.waits, 1u);
  EXPECT_EQ(s.streams, 2u);
  EXPECT_EQ(s.peak_live, Bytes(1612));
  EXPECT_EQ(s.peak_event, 3u);
  EXPECT_EQ(s.peak_allocated, Bytes(512 + 1536));
  EXPECT_EQ(s.largest_block, Bytes(1100));
  EXPECT_EQ(s.live_blocks_at_end, 1u);
  EXPECT_EQ(s.live_at_end, Bytes(1100));
}

TEST(Summarize, EmptyTraceIsAllZero) {
  const TraceSummary s = Summarize(Trace());
  EXPECT_EQ(s.events, 0u);
  EXPECT_EQ(s.streams, 0u);
  EXPECT_EQ(s.peak_live, Bytes(0));
}

TEST(Validate, AcceptsAWellFormedTrace) {
  EXPECT_TRUE(Validate(Small()).ok()) << Problem(Small());
  EXPECT_TRUE(Validate(Trace()).ok());
}

TEST(Validate, NamesTheEventAndTheValue) {
  Trace trace = Small();
  trace.events[3].block = 7;
  EXPECT_THAT(Problem(trace), HasSubstr("small: event 3: names block 7, which is not live"));

  trace = Small();
  trace.events[8].block = 0;  // freed by event 3
  EXPECT_THAT(Problem(trace), HasSubstr("event 8: names block 0, which is not live"));

  trace = Small();
  trace.events[2].block = 2;  // allocated by event 5
  EXPECT_THAT(Problem(trace), HasSubstr("event 2: names block 2, which is not live"));

  trace = Small();
  trace.ids[1] = 10;
  EXPECT_THAT(Problem(trace), HasSubstr("event 1: allocates id 10, which is live already"));

  trace = Small();
  trace.events[1].block = 2;
  EXPECT_THAT(Problem(trace), HasSubstr("event 1: allocates block 2, expected 1"));

  trace = Small();
  trace.events[1].value = 0;
  EXPECT_THAT(Problem(trace), HasSubstr("event 1: allocates 0 bytes"));

  trace = Small();
  trace.events[1].value = kMaxLiveBytes.count() - 1024 + 1;
  EXPECT_THAT(Problem(trace), HasSubstr("event 1: allocates 4611686018427386881 bytes with 1024 live"));
  trace.events[1].value = ~uint64_t{0};
  EXPECT_THAT(Problem(trace), HasSubstr("event 1: allocates 18446744073709551615 bytes"));

  trace = Small();
  trace.events[7].stream = -1;
  EXPECT_THAT(Problem(trace), HasSubstr("event 7: stream -1"));

  trace = Small();
  trace.events[4].block = 1;
  EXPECT_THAT(Problem(trace), HasSubstr("event 4: mark 1, expected 0"));

  trace = Small();
  trace.ids.push_back(99);
  EXPECT_THAT(Problem(trace), HasSubstr("3 blocks and 1 marks in events, expected 4 and 1"));

  trace = Small();
  trace.extra_columns = {",x"};
  EXPECT_THAT(Problem(trace), HasSubstr("extra columns for 1 events, expected none or 9"));
}

}  // namespace
}  // namespace expanse::bench

#include "bench/generate/trace_builder.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using testing::HasSubstr;

TEST(TraceBuilder, NumbersBlocksAndKeepsOrder) {
  TraceBuilder builder("made by hand");
  const BlockId first = builder.Allocate(Bytes(100));
  builder.Mark("step0");
  const BlockId second = builder.Allocate(Bytes(50), 3);
  EXPECT_EQ(builder.live(), Bytes(150));
  EXPECT_EQ(builder.live_blocks(), 2u);
  builder.Free({second, first});
  EXPECT_EQ(builder.live(), Bytes());
  EXPECT_EQ(builder.live_blocks(), 0u);

  const absl::StatusOr<Trace> trace = std::move(builder).Finish();
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->name, "made by hand");
  EXPECT_THAT(trace->labels, testing::ElementsAre("step0"));
  EXPECT_THAT(trace->ids, testing::ElementsAre(0u, 1u));
  ASSERT_EQ(trace->events.size(), 5u);
  EXPECT_EQ(trace->events[2].op, TraceOp::kAllocate);
  EXPECT_EQ(trace->events[2].value, 50u);
  EXPECT_EQ(trace->events[2].stream, 3);
  // Freed in the order given, each on its block's own stream.
  EXPECT_EQ(trace->events[3].op, TraceOp::kFree);
  EXPECT_EQ(trace->events[3].block, 1u);
  EXPECT_EQ(trace->events[3].stream, 3);
  EXPECT_EQ(trace->events[4].block, 0u);
}

TEST(TraceBuilder, ReportsTheFirstMisuse) {
  TraceBuilder builder("x");
  const BlockId block = builder.Allocate(Bytes(1));
  builder.Free(block);
  builder.Free(block);
  builder.Allocate(Bytes());
  const absl::StatusOr<Trace> trace = std::move(builder).Finish();
  EXPECT_EQ(trace.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(trace.status().message()), HasSubstr("block 0 is freed while it is not live"));
}

TEST(TraceBuilder, RefusesEmptyAndUnknownBlocks) {
  TraceBuilder empty("x");
  empty.Allocate(Bytes());
  EXPECT_THAT(std::string(std::move(empty).Finish().status().message()), HasSubstr("block 0 has zero bytes"));
  TraceBuilder unknown("x");
  unknown.Free(BlockId(5));
  EXPECT_THAT(std::string(std::move(unknown).Finish().status().message()), HasSubstr("block 5"));
}

}  // namespace
}  // namespace expanse::bench

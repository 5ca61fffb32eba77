// What is forgotten, so that long programs stay cheap.

#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "vmm/sim/timeline_fixture.h"

namespace expanse::sim {
namespace {

using std::chrono::microseconds;

TEST_F(TimelineTest, CompleteAndSeenWorkIsForgotten) {
  const StreamId stream = NonBlocking();
  for (uint64_t i = 0; i < 20000; ++i) {
    const WorkAccess access = Block(2 * i, i % 3 == 0);
    timeline_.Enqueue(stream, microseconds(1), {&access, 1}, "test");
    if (i % 50 == 49) timeline_.SynchronizeStream(stream);
  }
  EXPECT_LT(timeline_.footprint().pending_intervals, 300U);
  EXPECT_LT(timeline_.footprint().race_intervals, 300U);
}

TEST_F(TimelineTest, UnseenWorkIsRemembered) {
  const StreamId stream = NonBlocking();
  for (uint64_t i = 0; i < 5000; ++i) {
    const WorkAccess access = Block(2 * i, true);
    timeline_.Enqueue(stream, microseconds(1), {&access, 1}, "test");
  }
  timeline_.Advance(microseconds(5000));
  const WorkAccess first = Block(0, true);
  EXPECT_EQ(timeline_.Enqueue(NonBlocking(), microseconds(1), {&first, 1}, "test").races.size(), 1U);
}

TEST_F(TimelineTest, ClocksStayShortHoweverManyStreamsComeAndGo) {
  for (int i = 0; i < 1000; ++i) {
    const abi::Stream stream = timeline_.CreateStream(context_, i % 2 == 0);
    EXPECT_TRUE(Write(Find(stream)).races.empty());
    ASSERT_TRUE(timeline_.DestroyStream(stream));
    timeline_.SynchronizeContext(context_);
  }
  EXPECT_LE(timeline_.footprint().slots, 3U);
}

TEST_F(TimelineTest, ASlotWithUnseenWorkIsNotShared) {
  const abi::Stream first = timeline_.CreateStream(context_, /*blocking=*/false);
  const abi::Stream second = timeline_.CreateStream(context_, /*blocking=*/false);
  Write(Find(first));
  ASSERT_TRUE(timeline_.DestroyStream(first));
  timeline_.Advance(microseconds(10));
  timeline_.SynchronizeStream(Find(second));  // Says nothing of the first.
  EXPECT_EQ(Write(NonBlocking()).races.size(), 1U);
}

// Many streams, overlapping ranges: must stay near-linear. The figure of merit is the ctest timeout, not a time here.
TEST_F(TimelineTest, ALotOfQueuedWorkOnOverlappingRanges) {
  std::mt19937 random(1);
  std::vector<StreamId> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(NonBlocking());
  const abi::Event event = NewEvent();
  uint64_t races = 0;
  for (int i = 0; i < 100000; ++i) {
    const StreamId stream = streams[random() % streams.size()];
    const uint64_t block = random() % 1000;
    WorkAccess access = Block(block, random() % 2 == 0);
    access.range.size = KiB(4 * (1 + random() % 16));
    access.extents[0].size = access.range.size;
    races += timeline_.Enqueue(stream, microseconds(random() % 20), {&access, 1}, "test").races.size();
    if (i % 7 == 0) timeline_.Record(event, stream);
    if (i % 5 == 0) timeline_.Wait(streams[random() % streams.size()], event);
    if (i % 100 == 0) (void)timeline_.QueryEvent(event);
    timeline_.Advance(microseconds(1));
  }
  EXPECT_GT(races, 0U);
  EXPECT_LE(timeline_.footprint().race_intervals, 1100U);
  EXPECT_LE(timeline_.footprint().pending_intervals, 2200U);
}

}  // namespace
}  // namespace expanse::sim

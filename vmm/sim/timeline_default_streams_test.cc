// The legacy stream and the per-thread ones.

#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "vmm/sim/timeline_fixture.h"

namespace expanse::sim {
namespace {

using std::chrono::microseconds;

TEST_F(TimelineTest, TheLegacyStreamWaitsForBlockingStreams) {
  Write(Blocking());
  const QueuedWork queued = Write(Legacy());
  EXPECT_EQ(queued.start, microseconds(10));
  EXPECT_TRUE(queued.races.empty());
}

TEST_F(TimelineTest, BlockingStreamsWaitForTheLegacyStream) {
  const StreamId blocking = Blocking();
  Write(Legacy());
  const QueuedWork queued = Write(blocking);
  EXPECT_EQ(queued.start, microseconds(10));
  EXPECT_TRUE(queued.races.empty());
}

TEST_F(TimelineTest, TheLegacyStreamOrdersBlockingStreamsAmongThemselves) {
  const StreamId first = Blocking();
  const StreamId second = Blocking();
  Write(first);
  EXPECT_EQ(Read(second).races.size(), 1U);
  timeline_.Enqueue(Legacy(), microseconds(0), {}, "barrier");
  EXPECT_TRUE(Write(second).races.empty());
}

TEST_F(TimelineTest, NonBlockingStreamsAndTheLegacyStreamAreUnordered) {
  Write(NonBlocking());
  const QueuedWork queued = Write(Legacy());
  EXPECT_EQ(queued.start, microseconds(0));
  EXPECT_EQ(queued.races.size(), 1U);
  EXPECT_EQ(Write(NonBlocking()).races.size(), 1U);
}

TEST_F(TimelineTest, ARecordOnTheLegacyStreamCoversBlockingStreamsAlone) {
  const abi::Event event = NewEvent();
  timeline_.EnqueueUntil(Blocking(), microseconds(20), {}, "test");
  timeline_.EnqueueUntil(NonBlocking(), microseconds(90), {}, "test");
  timeline_.Record(event, Legacy());
  EXPECT_EQ(timeline_.SynchronizeEvent(event), microseconds(20));
}

TEST_F(TimelineTest, AWaitOnTheLegacyStreamHoldsBlockingStreams) {
  const StreamId other = NonBlocking();
  const StreamId blocking = Blocking();
  const abi::Event event = NewEvent();
  Write(other);
  timeline_.Record(event, other);
  timeline_.Wait(Legacy(), event);
  const QueuedWork queued = Write(blocking);
  EXPECT_EQ(queued.start, microseconds(10));
  EXPECT_TRUE(queued.races.empty());
}

TEST_F(TimelineTest, WaitingForTheLegacyStreamCoversItsOwnWorkAlone) {
  Write(Blocking());
  EXPECT_EQ(timeline_.SynchronizeStream(Legacy()), microseconds(0));
}

TEST_F(TimelineTest, TheLegacyStreamWaitsForDestroyedBlockingStreams) {
  const abi::Stream handle = timeline_.CreateStream(context_, /*blocking=*/true);
  Write(Find(handle));
  ASSERT_TRUE(timeline_.DestroyStream(handle));
  const QueuedWork queued = Write(Legacy());
  EXPECT_EQ(queued.start, microseconds(10));
  EXPECT_TRUE(queued.races.empty());
}

TEST_F(TimelineTest, LegacyStreamsOfTwoContextsAreStrangers) {
  const abi::Context other = reinterpret_cast<abi::Context>(0x20);
  timeline_.AddContext(other, DeviceOrdinal(1));
  Write(Legacy());
  EXPECT_EQ(Write(*timeline_.FindStream(nullptr, other, {})).races.size(), 1U);
}

TEST_F(TimelineTest, HandleOneIsTheLegacyStreamToo) {
  EXPECT_EQ(Find(reinterpret_cast<abi::Stream>(1)), Legacy());
  EXPECT_TRUE(timeline_.Info(Legacy()).legacy);
  EXPECT_TRUE(timeline_.Info(Legacy()).blocking);
}

TEST_F(TimelineTest, EachThreadHasItsOwnBlockingDefaultStream) {
  const StreamId mine = PerThread();
  EXPECT_EQ(PerThread(), mine);
  StreamId theirs{};
  std::thread([&] { theirs = PerThread(); }).join();
  EXPECT_NE(theirs, mine);
  EXPECT_TRUE(timeline_.Info(mine).blocking);
  EXPECT_FALSE(timeline_.Info(mine).legacy);
  Write(mine);
  EXPECT_EQ(Write(theirs).races.size(), 1U);
  EXPECT_TRUE(Write(Legacy()).races.empty());
}

}  // namespace
}  // namespace expanse::sim

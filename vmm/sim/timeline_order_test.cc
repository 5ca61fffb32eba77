// What orders work and what does not.

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/sim/timeline_fixture.h"

namespace expanse::sim {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

TEST_F(TimelineTest, UnorderedStreamsRace) {
  EXPECT_TRUE(Write(NonBlocking()).races.empty());
  EXPECT_EQ(Read(NonBlocking()).races.size(), 1U);
}

TEST_F(TimelineTest, CompletionThatNobodySawOrdersNothing) {
  EXPECT_TRUE(Write(NonBlocking()).races.empty());
  timeline_.Advance(microseconds(1000));
  EXPECT_EQ(Write(NonBlocking()).races.size(), 1U) << "a program that passes only by its timing is wrong";
}

TEST_F(TimelineTest, AStreamOrdersItsOwnWork) {
  const StreamId stream = NonBlocking();
  EXPECT_TRUE(Write(stream).races.empty());
  EXPECT_TRUE(Write(stream).races.empty());
}

TEST_F(TimelineTest, AnEventOrdersStreams) {
  const StreamId first = NonBlocking();
  const StreamId second = NonBlocking();
  const abi::Event event = NewEvent();
  Write(first);
  timeline_.Record(event, first);
  timeline_.Wait(second, event);
  const QueuedWork queued = Write(second);
  EXPECT_TRUE(queued.races.empty());
  EXPECT_EQ(queued.start, microseconds(10));
}

TEST_F(TimelineTest, AnEventDoesNotOrderWhatFollowsIt) {
  const StreamId first = NonBlocking();
  const StreamId second = NonBlocking();
  const abi::Event event = NewEvent();
  timeline_.Record(event, first);
  Write(first);
  timeline_.Wait(second, event);
  EXPECT_EQ(Write(second).races.size(), 1U);
}

TEST_F(TimelineTest, AWaitTakesTheRecordOfItsTime) {
  const StreamId first = NonBlocking();
  const StreamId second = NonBlocking();
  const abi::Event event = NewEvent();
  timeline_.Wait(second, event);  // Never recorded: no wait.
  Write(first);
  timeline_.Record(event, first);
  const QueuedWork queued = Write(second);
  EXPECT_EQ(queued.start, microseconds(0));
  EXPECT_EQ(queued.races.size(), 1U);
}

TEST_F(TimelineTest, RecordingAgainForgetsTheEarlierRecord) {
  const StreamId first = NonBlocking();
  const StreamId second = NonBlocking();
  const StreamId third = NonBlocking();
  const abi::Event event = NewEvent();
  Write(first);
  timeline_.Record(event, first);
  timeline_.Record(event, second);
  EXPECT_TRUE(timeline_.QueryEvent(event));
  timeline_.Wait(third, event);
  EXPECT_EQ(Write(third).races.size(), 1U);
}

TEST_F(TimelineTest, ADestroyedEventStillHoldsItsWaiters) {
  const StreamId first = NonBlocking();
  const StreamId second = NonBlocking();
  const abi::Event event = NewEvent();
  Write(first);
  timeline_.Record(event, first);
  timeline_.Wait(second, event);
  ASSERT_TRUE(timeline_.DestroyEvent(event));
  EXPECT_TRUE(Write(second).races.empty());
}

TEST_F(TimelineTest, UnrecordedEventsAreComplete) {
  const abi::Event event = NewEvent();
  Write(NonBlocking());
  EXPECT_TRUE(timeline_.QueryEvent(event));
  EXPECT_EQ(timeline_.SynchronizeEvent(event), microseconds(0));
}

TEST_F(TimelineTest, WhatTheHostWaitedForComesFirst) {
  const StreamId stream = NonBlocking();
  Write(stream);
  timeline_.SynchronizeStream(stream);
  EXPECT_TRUE(Write(NonBlocking()).races.empty());
  timeline_.SynchronizeContext(context_);
  EXPECT_TRUE(Write(stream).races.empty());
}

TEST_F(TimelineTest, AQuerySaysNothingUntilItSaysComplete) {
  const StreamId stream = NonBlocking();
  const abi::Event event = NewEvent();
  Write(stream);
  timeline_.Record(event, stream);
  EXPECT_FALSE(timeline_.QueryEvent(event));
  EXPECT_EQ(Read(NonBlocking()).races.size(), 1U);
  timeline_.Advance(microseconds(10));
  EXPECT_TRUE(timeline_.QueryEvent(event));
  EXPECT_TRUE(Read(NonBlocking()).races.empty());
}

TEST_F(TimelineTest, AStreamQueryThatSaysCompleteOrdersToo) {
  const StreamId stream = NonBlocking();
  Write(stream);
  timeline_.Advance(microseconds(10));
  EXPECT_TRUE(timeline_.QueryStream(stream));
  EXPECT_TRUE(Write(NonBlocking()).races.empty());
}

TEST_F(TimelineTest, AliasesAreTheSameBytes) {
  Use(NonBlocking(), /*writes=*/true, DeviceAddress(0x1000000));
  const QueuedWork queued = Use(NonBlocking(), /*writes=*/true, DeviceAddress(0x9000000));
  ASSERT_EQ(queued.races.size(), 1U);
  EXPECT_THAT(queued.races[0].ToString(), HasSubstr("allocation 1"));
}

TEST_F(TimelineTest, MemoryThatIsGoneRacesWithNothing) {
  Write(NonBlocking());
  timeline_.ForgetAllocation(kMemory);
  EXPECT_TRUE(Write(NonBlocking()).races.empty());
}

}  // namespace
}  // namespace expanse::sim

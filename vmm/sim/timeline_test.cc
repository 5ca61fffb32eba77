// The clock, waits and queries, handles, and what unmapping meets.

#include <chrono>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/sim/timeline_fixture.h"

namespace expanse::sim {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(TimelineTest, SynchronizingAContextAgainWaitsForWhatItsStreamsWereToldToAwaitSince) {
  const auto other = reinterpret_cast<abi::Context>(0x20);
  timeline_.AddContext(other, DeviceOrdinal(1));
  const StreamId waiting = NonBlocking();
  Read(waiting);
  EXPECT_EQ(timeline_.SynchronizeContext(context_), microseconds(10));
  EXPECT_EQ(timeline_.SynchronizeContext(context_), microseconds(0));
  const QueuedWork work = Read(Find(timeline_.CreateStream(other, /*blocking=*/false)));
  const abi::Event event = timeline_.CreateEvent(other);
  timeline_.Record(event, work.work.stream);
  timeline_.Wait(waiting, event);
  EXPECT_EQ(timeline_.SynchronizeContext(context_), microseconds(10));
  EXPECT_EQ(timeline_.now(), work.end);
}

TEST_F(TimelineTest, WorkOfAStreamRunsInTurn) {
  const StreamId stream = NonBlocking();
  timeline_.Advance(microseconds(5));
  EXPECT_EQ(Read(stream).end, microseconds(15));
  const QueuedWork second = Read(stream);
  EXPECT_EQ(second.start, microseconds(15));
  EXPECT_EQ(second.end, microseconds(25));
}

TEST_F(TimelineTest, StreamsRunSideBySide) {
  EXPECT_EQ(Read(NonBlocking()).end, microseconds(10));
  EXPECT_EQ(Read(NonBlocking()).end, microseconds(10));
}

TEST_F(TimelineTest, WorkStartsNoEarlierThanItIsQueued) {
  const StreamId stream = NonBlocking();
  Read(stream);
  timeline_.Advance(microseconds(50));
  EXPECT_EQ(Read(stream).start, microseconds(50));
}

TEST_F(TimelineTest, WorkUntilAGivenTimeEndsThenOrWhenItStarts) {
  const StreamId stream = NonBlocking();
  EXPECT_EQ(timeline_.EnqueueUntil(stream, microseconds(30), {}, "test").end, microseconds(30));
  EXPECT_EQ(timeline_.EnqueueUntil(stream, microseconds(20), {}, "test").end, microseconds(30));
}

TEST_F(TimelineTest, TheEndOfTimeIsNotPassed) {
  const StreamId stream = NonBlocking();
  EXPECT_EQ(timeline_.EnqueueUntil(stream, VirtualTime::max(), {}, "test").end, VirtualTime::max());
  EXPECT_EQ(timeline_.Enqueue(stream, microseconds(1), {}, "test").end, VirtualTime::max());
  timeline_.Advance(microseconds(1));
  EXPECT_FALSE(timeline_.Idle());
  timeline_.SynchronizeStream(stream);
  timeline_.Advance(microseconds(1));
  EXPECT_EQ(timeline_.now(), VirtualTime::max());
}

TEST_F(TimelineTest, QueriesFollowTheClock) {
  const StreamId stream = NonBlocking();
  const abi::Event event = NewEvent();
  EXPECT_TRUE(timeline_.QueryStream(stream));
  Read(stream);
  timeline_.Record(event, stream);
  EXPECT_FALSE(timeline_.QueryStream(stream));
  EXPECT_FALSE(timeline_.QueryEvent(event));
  EXPECT_FALSE(timeline_.Idle());
  timeline_.Advance(microseconds(10));
  EXPECT_TRUE(timeline_.QueryStream(stream));
  EXPECT_TRUE(timeline_.QueryEvent(event));
  EXPECT_TRUE(timeline_.Idle());
}

TEST_F(TimelineTest, WaitsMoveTheClockAndCountAsStalls) {
  const StreamId stream = NonBlocking();
  const abi::Event event = NewEvent();
  Read(stream);
  timeline_.Record(event, stream);
  Read(stream);
  timeline_.Advance(microseconds(4));
  EXPECT_EQ(timeline_.SynchronizeEvent(event), microseconds(6));
  EXPECT_EQ(timeline_.now(), microseconds(10));
  EXPECT_EQ(timeline_.SynchronizeStream(stream), microseconds(10));
  EXPECT_EQ(timeline_.SynchronizeStream(stream), microseconds(0));
  EXPECT_EQ(timeline_.stalled(), microseconds(16));
  timeline_.ResetStalled();
  EXPECT_EQ(timeline_.stalled(), microseconds(0));
}

TEST_F(TimelineTest, ContextSynchronizeWaitsForEveryStreamOfThatContextOnly) {
  const abi::Context other = reinterpret_cast<abi::Context>(0x20);
  timeline_.AddContext(other, DeviceOrdinal(1));
  Read(NonBlocking());
  timeline_.EnqueueUntil(PerThread(), microseconds(30), {}, "test");
  const abi::Stream elsewhere = timeline_.CreateStream(other, /*blocking=*/true);
  timeline_.EnqueueUntil(*timeline_.FindStream(elsewhere, other, {}), microseconds(90), {}, "test");
  EXPECT_EQ(timeline_.SynchronizeContext(context_), microseconds(30));
  EXPECT_FALSE(timeline_.Idle());
}

TEST_F(TimelineTest, HandleValuesAreReusedAndIdsAreNot) {
  const abi::Stream first = timeline_.CreateStream(context_, /*blocking=*/false);
  const StreamId first_id = Find(first);
  ASSERT_TRUE(timeline_.DestroyStream(first));
  EXPECT_FALSE(timeline_.DestroyStream(first));
  EXPECT_EQ(timeline_.FindStream(first, context_, {}), std::nullopt);
  const abi::Stream second = timeline_.CreateStream(context_, /*blocking=*/false);
  EXPECT_EQ(second, first);
  EXPECT_NE(Find(second), first_id);
  EXPECT_EQ(timeline_.stream_count(), 1U);

  const abi::Event event = NewEvent();
  ASSERT_TRUE(timeline_.DestroyEvent(event));
  EXPECT_FALSE(timeline_.DestroyEvent(event));
  EXPECT_EQ(timeline_.FindEvent(event), std::nullopt);
  EXPECT_EQ(NewEvent(), event);
  EXPECT_EQ(timeline_.event_count(), 1U);
}

TEST_F(TimelineTest, AStreamUnderAReusedHandleIsNotTheOldOne) {
  const abi::Stream first = timeline_.CreateStream(context_, /*blocking=*/false);
  Write(Find(first));
  ASSERT_TRUE(timeline_.DestroyStream(first));
  const abi::Stream second = timeline_.CreateStream(context_, /*blocking=*/false);
  ASSERT_EQ(second, first);
  const QueuedWork queued = Write(Find(second));
  EXPECT_EQ(queued.start, microseconds(0));
  EXPECT_EQ(queued.races.size(), 1U);
}

TEST_F(TimelineTest, ADestroyedStreamFinishesItsWork) {
  const abi::Stream stream = timeline_.CreateStream(context_, /*blocking=*/false);
  Write(Find(stream));
  ASSERT_TRUE(timeline_.DestroyStream(stream));
  EXPECT_FALSE(timeline_.Idle());
  EXPECT_THAT(timeline_.PendingOn(kRange), SizeIs(1));
  EXPECT_EQ(timeline_.SynchronizeContext(context_), microseconds(10));
  EXPECT_TRUE(Write(NonBlocking()).races.empty());
}

TEST_F(TimelineTest, DefaultStreamsAndStrangersCannotBeDestroyed) {
  EXPECT_FALSE(timeline_.DestroyStream(nullptr));
  EXPECT_FALSE(timeline_.DestroyStream(StreamHandlePerThread()));
  EXPECT_FALSE(timeline_.DestroyStream(reinterpret_cast<abi::Stream>(0x1234)));
  EXPECT_EQ(timeline_.FindStream(reinterpret_cast<abi::Stream>(0x1234), context_, {}), std::nullopt);
  EXPECT_EQ(timeline_.FindStream(nullptr, nullptr, {}), std::nullopt) << "a default stream needs a context";
}

TEST_F(TimelineTest, ARemovedContextTakesItsStreamsAndEventsAlong) {
  const abi::Stream stream = timeline_.CreateStream(context_, /*blocking=*/false);
  const abi::Event event = NewEvent();
  Write(Find(stream));
  timeline_.Record(event, Find(stream));
  Read(PerThread());
  EXPECT_EQ(timeline_.RemoveContext(context_), microseconds(10));
  EXPECT_TRUE(timeline_.Idle());
  EXPECT_FALSE(timeline_.HasContext(context_));
  EXPECT_EQ(timeline_.FindStream(stream, context_, {}), std::nullopt);
  EXPECT_EQ(timeline_.FindEvent(event), std::nullopt);
  EXPECT_TRUE(timeline_.CheckInvariants().ok()) << timeline_.CheckInvariants();
  timeline_.AddContext(context_, DeviceOrdinal(0));
  EXPECT_TRUE(Write(Legacy()).races.empty());
}

TEST_F(TimelineTest, WorkIsPendingOnItsRangeUntilItCompletes) {
  EXPECT_THAT(timeline_.PendingOn(kRange), IsEmpty());
  Read(NonBlocking());
  const AddressRange last_byte{kRange.end() - Bytes(1), Bytes(1)};
  EXPECT_THAT(timeline_.PendingOn(last_byte), SizeIs(1));
  EXPECT_THAT(timeline_.PendingOn(AddressRange{kRange.end(), MiB(1)}), IsEmpty());
  EXPECT_THAT(timeline_.PendingOn(AddressRange{kRange.begin - MiB(1), MiB(1)}), IsEmpty());
  timeline_.Advance(microseconds(9));
  EXPECT_THAT(timeline_.PendingOn(kRange), SizeIs(1));
  timeline_.Advance(microseconds(1));
  EXPECT_THAT(timeline_.PendingOn(kRange), IsEmpty());
}

TEST_F(TimelineTest, OfWorkOnTheSameBytesTheLastToEndIsNamed) {
  const StreamId slow = NonBlocking();
  const WorkAccess access{kRange, false, {}};
  timeline_.EnqueueUntil(slow, microseconds(70), {&access, 1}, "slow");
  timeline_.EnqueueUntil(NonBlocking(), microseconds(30), {&access, 1}, "fast");
  const std::vector<PendingWork> pending = timeline_.PendingOn(kRange);
  ASSERT_THAT(pending, SizeIs(1));
  EXPECT_EQ(pending[0].work.stream, slow);
  EXPECT_THAT(pending[0].ToString(), HasSubstr("work 1 (slow)"));
  EXPECT_THAT(pending[0].ToString(), HasSubstr("until 70000 ns"));
}

TEST_F(TimelineTest, AllWorkOnPartsOfARangeIsNamed) {
  const auto enqueue = [this](Bytes offset, Bytes size, microseconds end, const char* what) {
    const WorkAccess access{{kRange.begin + offset, size}, true, {}};
    timeline_.EnqueueUntil(NonBlocking(), end, {&access, 1}, what);
  };
  enqueue(KiB(64), KiB(192), microseconds(30), "middle");
  enqueue(KiB(128), KiB(64), microseconds(90), "late");  // splits the middle in two
  enqueue(Bytes(0), KiB(64), microseconds(10), "early");
  enqueue(KiB(512), KiB(64), microseconds(40), "last");
  timeline_.Advance(microseconds(10));
  const std::vector<PendingWork> pending = timeline_.PendingOn(kRange);
  ASSERT_THAT(pending, SizeIs(3));
  EXPECT_THAT(pending[0].ToString(), HasSubstr("(middle)"));
  EXPECT_THAT(pending[1].ToString(), HasSubstr("(late)"));
  EXPECT_THAT(pending[2].ToString(), HasSubstr("(last)"));
}

TEST_F(TimelineTest, AStreamWaitDoesNotMakeUnmappingSafe) {
  const StreamId first = NonBlocking();
  const StreamId second = NonBlocking();
  const abi::Event event = NewEvent();
  Write(first);
  timeline_.Record(event, first);
  timeline_.Wait(second, event);
  EXPECT_THAT(timeline_.PendingOn(kRange), SizeIs(1));
}

TEST_F(TimelineTest, ForgottenRangesHaveNothingPending) {
  Write(NonBlocking());
  timeline_.ForgetRange(AddressRange{kRange.begin, MiB(1)});
  EXPECT_THAT(timeline_.PendingOn(AddressRange{kRange.begin, MiB(1)}), IsEmpty());
  EXPECT_THAT(timeline_.PendingOn(kRange), SizeIs(1));
}

}  // namespace
}  // namespace expanse::sim

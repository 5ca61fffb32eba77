#include "vmm/sim/timeline.h"

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::sim {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

constexpr AllocationId kMemory{1};
const AddressRange kRange{DeviceAddress(0x1000000), MiB(2)};

class TimelineTest : public ::testing::Test {
 protected:
  TimelineTest() { timeline_.AddContext(context_, DeviceOrdinal(0)); }
  ~TimelineTest() override { EXPECT_TRUE(timeline_.CheckInvariants().ok()) << timeline_.CheckInvariants(); }

  StreamId Find(abi::Stream handle) {
    const auto id = timeline_.FindStream(handle, context_, std::this_thread::get_id());
    EXPECT_TRUE(id.has_value());
    return id.value_or(StreamId{});
  }
  StreamId Legacy() { return Find(nullptr); }
  StreamId PerThread() { return Find(StreamHandlePerThread()); }
  StreamId Blocking() { return Find(timeline_.CreateStream(context_, /*blocking=*/true)); }
  StreamId NonBlocking() { return Find(timeline_.CreateStream(context_, /*blocking=*/false)); }
  abi::Event NewEvent() { return timeline_.CreateEvent(context_); }

  static abi::Stream StreamHandlePerThread() { return static_cast<abi::Stream>(StreamHandle::PerThread().raw()); }

  // Queues work of 10 us on the memory, seen at `at`.
  QueuedWork Use(StreamId stream, bool writes, DeviceAddress at = kRange.begin) {
    const WorkAccess access{{at, kRange.size}, writes, {{kMemory, Bytes(0), kRange.size}}};
    QueuedWork queued = timeline_.Enqueue(stream, microseconds(10), {&access, 1}, "test");
    EXPECT_TRUE(timeline_.CheckInvariants().ok()) << timeline_.CheckInvariants();
    return queued;
  }
  QueuedWork Write(StreamId stream) { return Use(stream, true); }
  QueuedWork Read(StreamId stream) { return Use(stream, false); }

  const abi::Context context_ = reinterpret_cast<abi::Context>(0x10);
  Timeline timeline_;
};

// --- Time
// -------------------------------------------------------------------------------------------------------------

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

// --- Order
// ------------------------------------------------------------------------------------------------------------

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

// --- Default streams
// --------------------------------------------------------------------------------------------------

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

// --- Handles
// ----------------------------------------------------------------------------------------------------------

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
  EXPECT_TRUE(timeline_.PendingOn(kRange).has_value());
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

// --- Unmapping
// --------------------------------------------------------------------------------------------------------

TEST_F(TimelineTest, WorkIsPendingOnItsRangeUntilItCompletes) {
  EXPECT_EQ(timeline_.PendingOn(kRange), std::nullopt);
  Read(NonBlocking());
  const AddressRange last_byte{kRange.end() - Bytes(1), Bytes(1)};
  EXPECT_TRUE(timeline_.PendingOn(last_byte).has_value());
  EXPECT_EQ(timeline_.PendingOn(AddressRange{kRange.end(), MiB(1)}), std::nullopt);
  EXPECT_EQ(timeline_.PendingOn(AddressRange{kRange.begin - MiB(1), MiB(1)}), std::nullopt);
  timeline_.Advance(microseconds(9));
  EXPECT_TRUE(timeline_.PendingOn(kRange).has_value());
  timeline_.Advance(microseconds(1));
  EXPECT_EQ(timeline_.PendingOn(kRange), std::nullopt);
}

TEST_F(TimelineTest, TheLastWorkToEndIsNamed) {
  const StreamId slow = NonBlocking();
  const WorkAccess access{kRange, false, {}};
  timeline_.EnqueueUntil(slow, microseconds(70), {&access, 1}, "slow");
  timeline_.EnqueueUntil(NonBlocking(), microseconds(30), {&access, 1}, "fast");
  const std::optional<PendingWork> pending = timeline_.PendingOn(kRange);
  ASSERT_TRUE(pending.has_value());
  EXPECT_EQ(pending->work.stream, slow);
  EXPECT_THAT(pending->ToString(), HasSubstr("work 1 (slow)"));
  EXPECT_THAT(pending->ToString(), HasSubstr("until 70000 ns"));
}

TEST_F(TimelineTest, AStreamWaitDoesNotMakeUnmappingSafe) {
  const StreamId first = NonBlocking();
  const StreamId second = NonBlocking();
  const abi::Event event = NewEvent();
  Write(first);
  timeline_.Record(event, first);
  timeline_.Wait(second, event);
  EXPECT_TRUE(timeline_.PendingOn(kRange).has_value());
}

TEST_F(TimelineTest, ForgottenRangesHaveNothingPending) {
  Write(NonBlocking());
  timeline_.ForgetRange(AddressRange{kRange.begin, MiB(1)});
  EXPECT_EQ(timeline_.PendingOn(AddressRange{kRange.begin, MiB(1)}), std::nullopt);
  EXPECT_TRUE(timeline_.PendingOn(kRange).has_value());
}

// --- Pruning
// ----------------------------------------------------------------------------------------------------------

WorkAccess Block(uint64_t index, bool writes) {
  return {{DeviceAddress(0x1000000 + index * 4096), KiB(4)}, writes, {{kMemory, KiB(4 * index), KiB(4)}}};
}

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

// Random programs, against the transitive closure of the order that the rules give.
TEST(TimelineModel, RacesAreTheUnorderedPairs) {
  uint64_t work_without_race = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const abi::Context context = reinterpret_cast<abi::Context>(0x10);
    Timeline timeline;
    timeline.AddContext(context, DeviceOrdinal(0));
    constexpr int kStreams = 4;  // The legacy stream, a blocking one and two non-blocking ones.
    std::vector<StreamId> streams = {*timeline.FindStream(nullptr, context, {})};
    for (int i = 1; i < kStreams; ++i) {
      streams.push_back(*timeline.FindStream(timeline.CreateStream(context, i == 1), context, {}));
    }
    const std::vector<abi::Event> events = {timeline.CreateEvent(context), timeline.CreateEvent(context)};

    // The model: the set of work (by number) that comes before the next action of each stream, event and the host.
    using Set = std::vector<bool>;
    constexpr int kSteps = 120;
    std::vector<Set> before(kStreams, Set(kSteps + 1));
    std::vector<Set> recorded(events.size(), Set(kSteps + 1));
    Set host(kSteps + 1);
    const auto join = [](Set& into, const Set& from) {
      for (size_t i = 0; i < into.size(); ++i) into[i] = into[i] || from[i];
    };
    const auto begin = [&](int stream) {
      join(before[stream], host);
      if (stream == 0) join(before[0], before[1]);
      if (stream == 1) join(before[1], before[0]);
    };
    struct Done {
      bool writes;
      uint64_t block;
    };
    std::vector<Done> done = {{false, 0}};  // Work is numbered from 1.

    for (int step = 0; step < kSteps; ++step) {
      const int stream = static_cast<int>(random() % kStreams);
      const size_t e = random() % events.size();
      switch (random() % 12) {
        case 0:
        case 1:
          begin(stream);
          recorded[e] = before[stream];
          timeline.Record(events[e], streams[stream]);
          break;
        case 2:
        case 3:
        case 4:
          begin(stream);
          join(before[stream], recorded[e]);
          timeline.Wait(streams[stream], events[e]);
          break;
        case 5:
          join(host, recorded[e]);
          timeline.SynchronizeEvent(events[e]);
          break;
        case 6:
          join(host, before[stream]);
          timeline.SynchronizeStream(streams[stream]);
          break;
        default: {
          begin(stream);
          const WorkAccess access = Block(random() % 8, random() % 3 == 0);
          const Done work{access.writes, access.extents[0].offset.count()};
          const QueuedWork queued = timeline.Enqueue(streams[stream], microseconds(1), {&access, 1}, "test");
          ASSERT_EQ(queued.work.number, done.size());
          bool races = false;
          for (size_t i = 1; i < done.size(); ++i) {
            races |= done[i].block == work.block && (done[i].writes || work.writes) && !before[stream][i];
          }
          for (const Race& race : queued.races) {
            ASSERT_FALSE(before[stream][race.earlier.number]) << race.ToString();
          }
          // What raced with an access that a later write replaced may go unreported, since the write raced itself: so
          // the two agree until the first race.
          ASSERT_EQ(!queued.races.empty(), races);
          if (races) step = kSteps;
          if (!races) ++work_without_race;
          before[stream][done.size()] = true;
          done.push_back(work);
        }
      }
      ASSERT_TRUE(timeline.CheckInvariants().ok()) << timeline.CheckInvariants();
    }
  }
  EXPECT_GT(work_without_race, 1500U) << "the programs are too racy to show anything";
}

}  // namespace
}  // namespace expanse::sim

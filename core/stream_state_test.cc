#include "core/stream_state.h"

#include <chrono>
#include <optional>
#include <thread>

#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using std::chrono::milliseconds;

TEST(StreamKey, TheLegacyDefaultStreamHasTwoHandlesAndOneKey) {
  const StreamHandle legacy(reinterpret_cast<void*>(uintptr_t{1}));  // CU_STREAM_LEGACY
  EXPECT_TRUE(StreamKey::Of(legacy) == StreamKey::Of(StreamHandle()));
  EXPECT_FALSE(StreamKey::Of(legacy) == StreamKey::Of(StreamHandle::PerThread()));
}

TEST(StreamKey, EveryThreadHasADefaultStreamOfItsOwn) {
  const StreamKey here = StreamKey::Of(StreamHandle::PerThread());
  EXPECT_TRUE(here.is_per_thread());
  EXPECT_TRUE(here == StreamKey::Of(StreamHandle::PerThread()));
  StreamKey there;
  std::thread([&] { there = StreamKey::Of(StreamHandle::PerThread()); }).join();
  EXPECT_FALSE(here == there);
}

class StreamStateTest : public SimulatedDeviceTest {
 protected:
  void SetUp() override {
    SimulatedDeviceTest::SetUp();
    const Driver& driver = simulator->driver();
    ASSERT_EQ(driver.ctx_set_current(device->context()), abi::kSuccess);
    ASSERT_EQ(driver.stream_create(&raw_, abi::kStreamNonBlocking), abi::kSuccess);
    events_.emplace(*device);
    state_.emplace(StreamKey::Of(StreamHandle(raw_)));
  }
  void TearDown() override {
    state_.reset();
    events_.reset();
    EXPECT_EQ(simulator->driver().stream_destroy(raw_), abi::kSuccess);
    SimulatedDeviceTest::TearDown();
  }
  void Work() { ASSERT_EQ(simulator->Launch(StreamHandle(raw_), milliseconds(10), {}), abi::kSuccess); }
  // The number of the epoch that was closed.
  uint64_t Close() {
    const absl::StatusOr<uint64_t> closed = state_->Close(*events_, *device);
    EXPECT_TRUE(closed.ok()) << closed.status();
    Check();
    return closed.value_or(0);
  }
  void Poll() {
    EXPECT_EQ(state_->Poll(*events_), absl::OkStatus());
    Check();
  }
  void Check() const { ASSERT_EQ(state_->CheckInvariants(), absl::OkStatus()); }

  abi::Stream raw_ = nullptr;
  std::optional<EventPool> events_;
  std::optional<StreamState> state_;
};

TEST_F(StreamStateTest, EpochsCompleteInOrderAsTheirWorkDoes) {
  EXPECT_EQ(state_->current_epoch(), 1u);
  EXPECT_TRUE(state_->IsOpen(1));
  Work();
  EXPECT_EQ(Close(), 1u);
  Work();
  EXPECT_EQ(Close(), 2u);
  EXPECT_EQ(state_->current_epoch(), 3u);
  Poll();
  EXPECT_FALSE(state_->IsComplete(1));
  simulator->Advance(milliseconds(11));
  EXPECT_FALSE(state_->IsComplete(1)) << "nobody has asked the driver";
  Poll();
  EXPECT_TRUE(state_->IsComplete(1));
  EXPECT_FALSE(state_->IsComplete(2));
  simulator->Advance(milliseconds(10));
  Poll();
  EXPECT_TRUE(state_->IsComplete(2));
  EXPECT_FALSE(state_->IsComplete(3)) << "it is open";
}

TEST_F(StreamStateTest, AsksOncePerCompleteEpochAndOnceForTheNext) {
  Close();
  Close();
  Work();
  Close();
  simulator->ResetCounters();
  Poll();
  EXPECT_EQ(Calls(EntryPoint::event_query), 3u);
  EXPECT_TRUE(state_->IsComplete(2));
}

TEST_F(StreamStateTest, AFailedCloseLeavesTheEpochOpen) {
  for (const EntryPoint call : {EntryPoint::ctx_push_current, EntryPoint::event_create, EntryPoint::event_record}) {
    simulator->FailNthCall(call, 1, abi::kUnknown);
    const absl::StatusOr<uint64_t> closed = state_->Close(*events_, *device);
    EXPECT_TRUE(absl::IsInternal(closed.status())) << closed.status();
    Check();
    EXPECT_TRUE(state_->IsOpen(1));
  }
  EXPECT_EQ(Close(), 1u);
}

TEST_F(StreamStateTest, AFailedQueryCompletesNothing) {
  Close();
  simulator->FailNthCall(EntryPoint::event_query, 1, abi::kUnknown);
  EXPECT_TRUE(absl::IsInternal(state_->Poll(*events_)));
  Check();
  EXPECT_FALSE(state_->IsComplete(1));
  Poll();
  EXPECT_TRUE(state_->IsComplete(1));
}

TEST_F(StreamStateTest, EventsAreUsedAgainUnlessSomebodyWaitsForThem) {
  Close();
  std::shared_ptr<const Event> held = state_->EventOf(1);
  ASSERT_NE(held, nullptr);
  Close();
  Poll();
  EXPECT_EQ(events_->spare(), 1u) << "the one of epoch 2";
  EXPECT_EQ(held->Synchronize(), absl::OkStatus());
  EXPECT_EQ(state_->EventOf(2), nullptr) << "the epoch is complete";
  held.reset();
  EXPECT_EQ(simulator->ledger().events, 1u);
}

TEST_F(StreamStateTest, WhatAHostWaitSawCompleteNeedsNoQuery) {
  Work();
  Close();
  Work();
  Close();
  ASSERT_EQ(state_->EventOf(1)->Synchronize(), absl::OkStatus());
  simulator->ResetCounters();
  state_->CompleteUpTo(1, *events_);
  Check();
  EXPECT_TRUE(state_->IsComplete(1));
  EXPECT_FALSE(state_->IsComplete(2));
  EXPECT_EQ(simulator->counters().TotalCalls(), 0u);
  state_->CompleteUpTo(1, *events_);  // another thread waited for the same
  Check();
}

TEST_F(StreamStateTest, IdleChunksAreCountedFromCloseToClose) {
  state_->AddIdle(3);
  state_->AddIdle(2);
  EXPECT_EQ(state_->idle_in_epoch(), 5u);
  Close();
  EXPECT_EQ(state_->idle_in_epoch(), 0u);
}

TEST_F(StreamStateTest, ADetachedStreamStaysInItsLastEpoch) {
  Work();
  EXPECT_EQ(state_->Detach(*events_, *device), absl::OkStatus());
  Check();
  EXPECT_TRUE(state_->detached());
  EXPECT_FALSE(state_->needs_fence());
  EXPECT_EQ(state_->current_epoch(), 1u);
  EXPECT_FALSE(state_->IsOpen(1));
  simulator->Advance(milliseconds(11));
  Poll();
  EXPECT_TRUE(state_->IsComplete(state_->current_epoch()));
}

TEST_F(StreamStateTest, WithoutALastEventOnlyAFenceCompletesIt) {
  Close();
  simulator->FailNthCall(EntryPoint::event_record, 1, abi::kUnknown);
  EXPECT_TRUE(absl::IsInternal(state_->Detach(*events_, *device)));
  Check();
  EXPECT_TRUE(state_->needs_fence());
  EXPECT_EQ(state_->EventOf(2), nullptr);
  Poll();
  EXPECT_TRUE(state_->IsComplete(1));
  EXPECT_FALSE(state_->IsComplete(2));
  state_->CompleteUpTo(state_->last_closed(), *events_);
  Check();
  EXPECT_TRUE(state_->IsComplete(2));
  EXPECT_FALSE(state_->needs_fence());
}

// The driver gives the handle of a destroyed stream to the next one.
class ReusedHandleTest : public StreamStateTest {
 protected:
  void Destroy() { ASSERT_EQ(simulator->driver().stream_destroy(raw_), abi::kSuccess); }
  void CreateAgain() {
    const abi::Stream before = raw_;
    ASSERT_EQ(simulator->driver().stream_create(&raw_, abi::kStreamNonBlocking), abi::kSuccess);
    ASSERT_EQ(raw_, before);
  }
};

TEST_F(ReusedHandleTest, AnEventOfAnotherStreamProvesNothing) {
  Work();
  EXPECT_EQ(Close(), 1u);
  Work();
  Destroy();
  CreateAgain();
  EXPECT_EQ(Close(), 2u);
  EXPECT_TRUE(state_->needs_fence());
  EXPECT_FALSE(state_->detached()) << "the stream that has the handle now goes on";
  EXPECT_EQ(Close(), 3u) << "which has done nothing";
  EXPECT_NE(state_->EventOf(1), nullptr);
  EXPECT_EQ(state_->EventOf(2), nullptr);
  EXPECT_EQ(state_->EventOf(3), nullptr);
  simulator->Advance(milliseconds(11));
  Poll();
  EXPECT_TRUE(state_->IsComplete(1));
  EXPECT_FALSE(state_->IsComplete(2));
  EXPECT_FALSE(state_->IsComplete(3));
  state_->CompleteUpTo(3, *events_);
  Check();
  EXPECT_FALSE(state_->needs_fence());
  EXPECT_EQ(Close(), 4u);
  Poll();
  EXPECT_TRUE(state_->IsComplete(4)) << "the new stream is known by now";
}

TEST_F(ReusedHandleTest, IsNoticedByTheFirstCloseOfAStreamThatWasIdentified) {
  state_->Identify(*device);
  EXPECT_EQ(Calls(EntryPoint::stream_get_id), 1u);
  state_->Identify(*device);
  EXPECT_EQ(Calls(EntryPoint::stream_get_id), 1u);
  Destroy();
  CreateAgain();
  Close();
  EXPECT_TRUE(state_->needs_fence());
  EXPECT_EQ(Calls(EntryPoint::event_record), 0u);
}

TEST_F(ReusedHandleTest, AHandleOfNoStreamClosesEpochsTooAndFencesAddUp) {
  Destroy();
  EXPECT_EQ(Close(), 1u);
  EXPECT_EQ(Close(), 2u);
  state_->CompleteUpTo(1, *events_);
  Check();
  EXPECT_TRUE(state_->IsComplete(1));
  EXPECT_TRUE(state_->needs_fence());
  state_->CompleteUpTo(2, *events_);
  Check();
  EXPECT_FALSE(state_->needs_fence());
  CreateAgain();
  EXPECT_EQ(Close(), 3u);
  EXPECT_FALSE(state_->needs_fence());
}

TEST_F(ReusedHandleTest, ADriverThatWillNotSayLeavesTheEpochOpen) {
  simulator->FailNthCall(EntryPoint::stream_get_id, 1, abi::kUnknown);
  EXPECT_TRUE(absl::IsInternal(state_->Close(*events_, *device).status()));
  Check();
  EXPECT_TRUE(state_->IsOpen(1));
}

TEST_F(StreamStateTest, DefaultStreamsAreNeverAskedWhoTheyAre) {
  for (const StreamHandle stream : {StreamHandle(), StreamHandle::PerThread()}) {
    StreamState state(StreamKey::Of(stream));
    state.Identify(*device);
    ASSERT_TRUE(state.Close(*events_, *device).ok());
    EXPECT_EQ(state.Poll(*events_), absl::OkStatus());
  }
  EXPECT_EQ(Calls(EntryPoint::stream_get_id), 0u);
  EXPECT_EQ(Calls(EntryPoint::event_record), 2u);
}

}  // namespace
}  // namespace expanse

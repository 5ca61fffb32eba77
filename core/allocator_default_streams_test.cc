// Streams that are not what their handle suggests: default streams, and handles that went to another stream.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;

class DefaultStreamsTest : public AllocatorTest {
 protected:
  // Runs on another thread, to its end.
  void Elsewhere(const std::function<void()>& run) {
    std::thread([&] {
      ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
      run();
    }).join();
  }
  StreamHandle NewBlockingStream() {
    abi::Stream raw = nullptr;
    EXPECT_EQ(sim_->driver().stream_create(&raw, abi::kStreamDefault), abi::kSuccess);
    streams_.emplace_back(raw);
    return streams_.back();
  }
  // Fills the device on `first`, frees it all while work is queued there, and takes half of it for `second`. The
  // simulator would see it if memory moved under that work.
  void MoveFromTo(StreamHandle first, StreamHandle second, uint64_t waits) {
    const DeviceAddress a = Alloc(MiB(64), first);
    Launch(first, microseconds(1000), a, MiB(64));
    Free(a);
    const DeviceAddress b = Alloc(MiB(32), second);
    EXPECT_EQ(stats().waits, waits);
    Launch(second, microseconds(10), b, MiB(32));
    Free(b);
  }
};

TEST_F(DefaultStreamsTest, AnEventOnTheLegacyStreamIsNoProofForANonBlockingStream) {
  Start();
  const StreamHandle non_blocking = NewStream();
  const DeviceAddress a = Alloc(MiB(32), StreamHandle());
  const DeviceAddress b = Alloc(MiB(32), non_blocking);
  Launch(non_blocking, microseconds(1000), b, MiB(32));
  Free(a);
  Free(b);
  const StreamHandle third = NewStream();
  Alloc(MiB(32), third);  // the legacy stream's memory, whose event is complete at once
  EXPECT_EQ(stats().waits, 0u);
  Alloc(MiB(32), third);
  EXPECT_EQ(stats().waits, 1u);
  EXPECT_EQ(sim_->now(), microseconds(1000));
}

TEST_F(DefaultStreamsTest, MemoryMovesFromTheLegacyStreamOnceItsWorkIsDone) {
  Start();
  MoveFromTo(StreamHandle(), NewStream(), /*waits=*/1);
}

TEST_F(DefaultStreamsTest, MemoryMovesFromABlockingStreamOnceItsWorkIsDone) {
  Start();
  MoveFromTo(NewBlockingStream(), StreamHandle(), /*waits=*/1);
}

TEST_F(DefaultStreamsTest, MemoryMovesFromAPerThreadStreamOnceItsWorkIsDone) {
  Start();
  MoveFromTo(StreamHandle::PerThread(), NewStream(), /*waits=*/1);
}

TEST_F(DefaultStreamsTest, EachThreadHasMemoryOfItsOwnOnItsDefaultStream) {
  Start();
  const DeviceAddress a = Alloc(MiB(4), StreamHandle::PerThread());
  Launch(StreamHandle::PerThread(), microseconds(1000), a, MiB(4));
  Free(a);
  Elsewhere([&] {
    const DeviceAddress b = Alloc(MiB(4), StreamHandle::PerThread());
    EXPECT_NE(b, a);
    Launch(StreamHandle::PerThread(), microseconds(1000), b, MiB(4));
    Free(b);
    EXPECT_EQ(Alloc(MiB(4), StreamHandle::PerThread()), b);
  });
  EXPECT_EQ(Alloc(MiB(4), StreamHandle::PerThread()), a);
  EXPECT_EQ(stats().waits, 0u);
}

// The thread that frees is not the one whose stream the work is on.
TEST_F(DefaultStreamsTest, AnotherThreadsDefaultStreamIsWaitedFor) {
  Start();
  DeviceAddress a;
  const auto first = [&] {
    a = Alloc(MiB(64), StreamHandle::PerThread());
    Launch(StreamHandle::PerThread(), microseconds(1000), a, MiB(64));
  };
  std::mutex mutex;
  std::condition_variable changed;
  int step = 0;
  const auto reach = [&](int next) {
    std::unique_lock<std::mutex> lock(mutex);
    step = next;
    changed.notify_all();
  };
  const auto await = [&](int wanted) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return step >= wanted; });
  };
  std::thread owner([&] {
    ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
    first();
    reach(1);
    await(2);  // its default stream lives as long as the thread
  });
  await(1);
  Free(a);
  const DeviceAddress b = Alloc(MiB(32), StreamHandle::PerThread());
  EXPECT_EQ(stats().waits, 1u);
  EXPECT_EQ(sim_->now(), microseconds(1000));
  Launch(StreamHandle::PerThread(), microseconds(10), b, MiB(32));
  reach(2);
  owner.join();
}

TEST_F(DefaultStreamsTest, AUseOnThePerThreadStreamIsTheCallingThreads) {
  Start();
  const StreamHandle stream = NewStream();
  const DeviceAddress a = Alloc(MiB(4), stream);
  Launch(StreamHandle::PerThread(), microseconds(1000), a, MiB(4));
  RecordUse(a, StreamHandle::PerThread());
  Free(a);
  EXPECT_EQ(stats().pending.current, MiB(4));
  const DeviceAddress b = Alloc(MiB(4), stream);
  EXPECT_NE(b, a);
  sim_->Advance(microseconds(1000));
  EXPECT_EQ(Alloc(MiB(4), stream), a);
}

// The program says nothing, and the next stream gets the handle.
TEST_F(DefaultStreamsTest, AStreamThatWasDestroyedWithoutNoticeIsWaitedFor) {
  Start();
  const StreamHandle one = NewStream();
  const DeviceAddress a = Alloc(MiB(64), one);
  Launch(one, microseconds(1000), a, MiB(64));
  Free(a);
  DestroyStream(one);
  ASSERT_EQ(NewStream(), one);
  const DeviceAddress b = Alloc(MiB(32), StreamHandle());
  EXPECT_EQ(stats().waits, 1u);
  EXPECT_EQ(sim_->now(), microseconds(1000));
  Launch(StreamHandle(), microseconds(10), b, MiB(32));
  // The stream that has the handle now is served as any other, and waited for by events.
  const DeviceAddress c = Alloc(MiB(32), one);
  Launch(one, microseconds(1000), c, MiB(32));
  Free(c);
  Alloc(MiB(8), StreamHandle());
  EXPECT_EQ(Calls(EntryPoint::ctx_synchronize), 1u);
  EXPECT_EQ(sim_->now(), microseconds(2000));
}

TEST_F(DefaultStreamsTest, AHandleThatNamesNoStreamAnyMoreDoesNotStopAnyone) {
  Start();
  const StreamHandle one = NewStream();
  const DeviceAddress a = Alloc(MiB(64), one);
  Launch(one, microseconds(1000), a, MiB(64));
  Free(a);
  DestroyStream(one);
  const DeviceAddress b = Alloc(MiB(32), StreamHandle());
  EXPECT_EQ(sim_->now(), microseconds(1000));
  Launch(StreamHandle(), microseconds(10), b, MiB(32));
  EXPECT_EQ(allocator_->OnStreamDestroyed(one), absl::OkStatus()) << "late, but not too late";
  Check();
  Alloc(MiB(32), StreamHandle());
}

// Events belong to a context: allocators of two devices must not lend each other any.
TEST_F(DefaultStreamsTest, AllocatorsOfTwoDevicesRecordEventsInTheirOwnContexts) {
  sim::Config config = SmallDevice();
  config.devices.push_back(config.devices[0]);
  Start(config);
  AllocatorOptions options;
  options.device = DeviceOrdinal(1);
  auto other = Allocator::Create(sim_->driver(), options);
  ASSERT_TRUE(other.ok()) << other.status();
  abi::Context context = nullptr;
  ASSERT_EQ(sim_->driver().primary_ctx_retain(&context, 1), abi::kSuccess);

  for (int round = 0; round < 3; ++round) {
    MoveFromTo(NewStream(), NewStream(), /*waits=*/round + 1);
    // The other device's streams are made in its context, but the allocator is called from this one.
    ASSERT_EQ(sim_->driver().ctx_set_current(context), abi::kSuccess);
    const StreamHandle one = NewStream();
    const StreamHandle two = NewStream();
    ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
    const absl::StatusOr<DeviceAddress> a = (*other)->Allocate(MiB(64), one);
    ASSERT_TRUE(a.ok()) << a.status();
    Launch(one, microseconds(1000), *a, MiB(64));
    ASSERT_EQ((*other)->RecordUse(*a, two), absl::OkStatus());
    ASSERT_EQ((*other)->Free(*a), absl::OkStatus());
    const absl::StatusOr<DeviceAddress> b = (*other)->Allocate(MiB(64), two);
    ASSERT_TRUE(b.ok()) << b.status();
    Launch(two, microseconds(10), *b, MiB(64));
    ASSERT_EQ((*other)->Free(*b), absl::OkStatus());
    ASSERT_EQ((*other)->CheckInvariants(), absl::OkStatus());
  }
  other->reset();
  EXPECT_EQ(sim_->driver().primary_ctx_release(1), abi::kSuccess);
}

}  // namespace
}  // namespace expanse

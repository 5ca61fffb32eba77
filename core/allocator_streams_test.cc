// Scenarios of several streams with queued work.

#include <chrono>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;

TEST_F(AllocatorTest, AStreamReusesItsOwnMemoryWithoutWaiting) {
  Start();
  const StreamHandle stream = NewStream();
  const DeviceAddress a = Alloc(MiB(4), stream);
  Launch(stream, microseconds(1000), a, MiB(4));
  Free(a);
  const uint64_t before = DriverCalls();
  EXPECT_EQ(Alloc(MiB(4), stream), a);
  Launch(stream, microseconds(1000), a, MiB(4));
  EXPECT_EQ(DriverCalls(), before);
  EXPECT_EQ(stats().waits, 0u);
}

TEST_F(AllocatorTest, AnotherStreamGetsOtherMemoryWhileWorkIsQueued) {
  Start();
  const StreamHandle one = NewStream();
  const StreamHandle two = NewStream();
  const DeviceAddress a = Alloc(MiB(4), one);
  Launch(one, microseconds(1000), a, MiB(4));
  Free(a);
  const DeviceAddress b = Alloc(MiB(4), two);
  EXPECT_NE(a, b);
  EXPECT_EQ(stats().waits, 0u);
}

TEST_F(AllocatorTest, WaitsForQueuedWorkOnlyWhenMemoryIsShort) {
  Start();
  const StreamHandle one = NewStream();
  const StreamHandle two = NewStream();
  const DeviceAddress a = Alloc(MiB(40), one);
  Launch(one, microseconds(1000), a, MiB(40));
  Free(a);
  const sim::VirtualTime before = sim_->now();
  const DeviceAddress b = Alloc(MiB(24), two);
  EXPECT_EQ(stats().waits, 0u);
  EXPECT_EQ(sim_->now(), before);
  Alloc(MiB(8), two);
  EXPECT_EQ(stats().waits, 1u);
  EXPECT_EQ(sim_->now() - before, microseconds(1000));
  EXPECT_EQ(stats().chunks_moved, 4u);
  Launch(two, microseconds(1000), b, MiB(24));
}

TEST_F(AllocatorTest, WaitsForTheOldestWorkThatSuffices) {
  Start();
  const StreamHandle one = NewStream();
  const StreamHandle two = NewStream();
  const StreamHandle three = NewStream();
  const DeviceAddress a = Alloc(MiB(32), one);
  const DeviceAddress b = Alloc(MiB(32), two);
  Launch(one, microseconds(100), a, MiB(32));
  Launch(two, microseconds(5000), b, MiB(32));
  Free(a);
  Free(b);
  Alloc(MiB(32), three);
  EXPECT_EQ(stats().waits, 1u);
  EXPECT_LT(sim_->now(), microseconds(5000));
}

TEST_F(AllocatorTest, WhileMemoryIsShortFreesCloseEpochsSoThatOldMemoryIsKnownComplete) {
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = MiB(512);
  Start(config);
  const StreamHandle one = NewStream();
  const StreamHandle two = NewStream();
  const DeviceAddress old = Alloc(MiB(128), one);
  const DeviceAddress young = Alloc(MiB(128), one);
  const DeviceAddress third = Alloc(MiB(128), one);
  Alloc(MiB(128), two);
  Free(third);
  Alloc(MiB(128), two);  // memory is short: third's chunks move
  Launch(one, microseconds(100), old, MiB(128));
  Free(old);  // closes the epoch
  EXPECT_EQ(Calls(EntryPoint::event_record), 2u);
  Launch(one, microseconds(100000), young, MiB(128));
  sim_->Advance(microseconds(100));
  Alloc(MiB(128), two);
  EXPECT_EQ(stats().waits, 0u);
}

TEST_F(AllocatorTest, MemoryThatBecomesCompleteWhileOthersAreAskedAboutIsNotMissed) {
  Start();
  const StreamHandle one = NewStream();
  const DeviceAddress a = Alloc(MiB(32), one);
  const DeviceAddress b = Alloc(MiB(16), one);
  Launch(one, microseconds(100), a, MiB(32));
  Free(a);
  ASSERT_TRUE(allocator_->Trim(Bytes()).ok());  // closes the epoch
  Free(b);
  // a is found incomplete; closing b's epoch then takes so long that a is complete afterwards.
  sim_->DelayCalls(EntryPoint::event_record, microseconds(200));
  Alloc(MiB(60), NewStream());
}

TEST_F(AllocatorTest, ARefusalForOneStreamLeavesOtherStreamsMemory) {
  Start();
  const DeviceAddress a = Alloc(MiB(32), NewStream());
  const DeviceAddress b = Alloc(MiB(32), NewStream());
  Free(a);
  Free(b);
  sim_->FailNthCall(EntryPoint::event_record, 1, abi::kUnknown);
  Alloc(MiB(32), NewStream());
  EXPECT_TRUE(sim_->IsMapped({a, MiB(32)}));
  EXPECT_FALSE(sim_->IsMapped({b, MiB(32)}));
}

TEST_F(AllocatorTest, DoesNotWaitForWorkThatCannotSuffice) {
  Start();
  const StreamHandle one = NewStream();
  const StreamHandle two = NewStream();
  Alloc(MiB(40), two);
  const DeviceAddress a = Alloc(MiB(16), one);
  Launch(one, microseconds(1000), a, MiB(16));
  Free(a);
  EXPECT_EQ(AllocFails(MiB(30), two).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().waits, 0u);
}

TEST_F(AllocatorTest, AStreamWithoutIdleChunksNeverGetsAnEvent) {
  Start();
  const StreamHandle one = NewStream();
  const StreamHandle two = NewStream();
  const DeviceAddress pin = Alloc(KiB(512), one);
  Free(Alloc(KiB(512), one));
  const DeviceAddress a = Alloc(MiB(30), two);
  Alloc(MiB(30), two);
  Free(a);
  Alloc(MiB(32), two);
  EXPECT_EQ(Calls(EntryPoint::event_record), 1u) << "of the stream that freed whole chunks";
  Free(pin);
}

TEST_F(AllocatorTest, ABlockUsedByAnotherStreamIsPendingUntilThatIsDone) {
  Start();
  const StreamHandle one = NewStream();
  const StreamHandle two = NewStream();
  const DeviceAddress a = Alloc(MiB(4), one);
  RecordUse(a, two);
  RecordUse(a, two);
  RecordUse(a, one);
  Launch(two, microseconds(1000), a, MiB(4));
  Free(a);
  EXPECT_EQ(Calls(EntryPoint::event_record), 1u);
  EXPECT_EQ(stats().pending.current, MiB(4));
  EXPECT_EQ(stats().live.current, Bytes());
  EXPECT_NE(Alloc(MiB(4), one), a);
  sim_->Advance(microseconds(1000));
  // The next search that fails notices.
  EXPECT_EQ(Alloc(MiB(4), one), a);
  EXPECT_EQ(stats().pending.current, Bytes());
}

TEST_F(AllocatorTest, FreeOnAnotherStreamIsOrderedAfterThatStream) {
  Start();
  const StreamHandle one = NewStream();
  const StreamHandle two = NewStream();
  const DeviceAddress a = Alloc(MiB(64), one);
  Launch(two, microseconds(1000), a, MiB(64));
  Free(a, two);
  EXPECT_EQ(stats().pending.current, MiB(64));
  const DeviceAddress b = Alloc(MiB(64), one);
  EXPECT_EQ(stats().waits, 1u);
  EXPECT_EQ(a, b);
  Launch(one, microseconds(1000), b, MiB(64));
}

TEST_F(AllocatorTest, BothNamesOfTheLegacyStreamAreOneStream) {
  Start();
  const DeviceAddress a = Alloc(MiB(4), StreamHandle());
  Free(a, StreamHandle(reinterpret_cast<void*>(1)));
  EXPECT_EQ(stats().pending.current, Bytes());
  EXPECT_EQ(Alloc(MiB(4), StreamHandle(reinterpret_cast<void*>(1))), a);
}

// The driver gives the handle of a destroyed stream to the next one, and the program never says so.
TEST_F(AllocatorTest, AStreamKnownOnlyAsAUserIsNotTakenForTheNextOneWithItsHandle) {
  Start();
  const StreamHandle own = NewStream();
  const StreamHandle user = NewStream();
  const DeviceAddress block = Alloc(MiB(8), own);
  RecordUse(block, user);
  Launch(user, microseconds(100), block, MiB(8));
  DestroyStream(user);
  StreamHandle next = NewStream();
  ASSERT_EQ(next, user) << "the simulator hands handles out again";
  Free(block);
  const DeviceAddress rest = Alloc(MiB(64 - 8), own);
  Free(rest);
  Alloc(MiB(64), own);
  EXPECT_GE(sim_->now(), microseconds(100)) << "nothing moved before the old stream's work was done";
}

TEST_F(AllocatorTest, ADestroyedStreamsBlocksStayValidAndItsMemoryMoves) {
  Start();
  const StreamHandle one = NewStream();
  const DeviceAddress a = Alloc(MiB(32), one);
  const DeviceAddress b = Alloc(MiB(16), one);
  Launch(one, microseconds(500), a, MiB(32));
  Launch(one, microseconds(500), b, MiB(16));
  Free(a);
  ASSERT_EQ(allocator_->OnStreamDestroyed(one), absl::OkStatus());
  Check();
  DestroyStream(one);
  const StreamHandle again = NewStream();
  EXPECT_EQ(again, one) << "the simulator gives the handle out again";
  const DeviceAddress c = Alloc(MiB(48), again);
  EXPECT_EQ(stats().waits, 1u);
  Launch(again, microseconds(500), c, MiB(48));
  Free(b);
  Alloc(MiB(16), again);
  EXPECT_EQ(stats().live.current, MiB(64));
}

TEST_F(AllocatorTest, DestroyedStreamsGiveTheirAddressesBack) {
  Start();
  const Bytes addresses = stats().address_space.current;
  for (int i = 0; i < 40; ++i) {
    const StreamHandle stream = NewStream();
    const DeviceAddress a = Alloc(MiB(8), stream);
    const DeviceAddress b = Alloc(KiB(8), stream);
    Launch(stream, microseconds(10), a, MiB(8));
    Free(a);
    Free(b);
    ASSERT_EQ(allocator_->OnStreamDestroyed(stream), absl::OkStatus());
    DestroyStream(stream);
    sim_->Advance(microseconds(10));
    ASSERT_TRUE(allocator_->Trim(Bytes()).ok());
    Check();
  }
  EXPECT_EQ(stats().address_space.current, addresses);
}

TEST_F(AllocatorTest, FiveThousandStreamsFindAddresses) {
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = GiB(80);
  Start(config);
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 5000; ++i) {
    const StreamHandle stream = NewStream();
    for (const Bytes size : {KiB(4), MiB(3)}) {
      const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream);
      ASSERT_TRUE(address.ok()) << "stream " << i << ": " << address.status();
      blocks.push_back(*address);
    }
  }
  Check();
  EXPECT_LE(stats().address_space.current, TiB(5));
  for (const DeviceAddress block : blocks) ASSERT_EQ(allocator_->Free(block), absl::OkStatus());
  // All of it serves another stream, and a request as large as the device still finds addresses.
  Free(Alloc(GiB(80), NewStream()));
}

}  // namespace
}  // namespace expanse

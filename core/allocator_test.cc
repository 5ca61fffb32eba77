// Scenarios of one stream: packing, growth, moves, and giving back.

#include <chrono>
#include <cstring>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;

TEST_F(AllocatorTest, TakesNoPhysicalMemoryBeforeItIsAskedForSome) {
  Start();
  EXPECT_EQ(stats().reserved.current, Bytes());
  EXPECT_EQ(sim_->committed(DeviceOrdinal(0)), Bytes());
  EXPECT_EQ(stats().address_space.current, MiB(512));
}

TEST_F(AllocatorTest, BlocksAreAlignedAndCounted) {
  Start();
  const DeviceAddress a = Alloc(Bytes(1));
  const DeviceAddress b = Alloc(Bytes(513));
  EXPECT_EQ(a.value() % 512, 0u);
  EXPECT_EQ(b - a, Bytes(512));
  EXPECT_EQ(stats().live.current, Bytes(514));
  EXPECT_EQ(stats().allocated.current, Bytes(512 + 1024));
  EXPECT_EQ(stats().reserved.current, kChunk);
  EXPECT_EQ(stats().live_blocks, 2u);
  Free(a);
  Free(b);
  EXPECT_EQ(stats().live.current, Bytes());
  EXPECT_EQ(stats().live.peak, Bytes(514));
  EXPECT_EQ(stats().allocated.total, Bytes(512 + 1024));
  EXPECT_EQ(stats().idle.current, kChunk);
  allocator_->ResetPeaks();
  EXPECT_EQ(stats().live.peak, Bytes());
  EXPECT_EQ(stats().reserved.peak, kChunk);
}

TEST_F(AllocatorTest, MemoryAtHandIsServedWithoutDriverCalls) {
  Start();
  const DeviceAddress a = Alloc(MiB(10));
  Free(a);
  const uint64_t before = DriverCalls();
  for (int i = 0; i < 10; ++i) Free(Alloc(MiB(10)));
  const DeviceAddress b = Alloc(MiB(4));
  Free(Alloc(MiB(6)));
  Free(b);
  EXPECT_EQ(DriverCalls(), before);
}

TEST_F(AllocatorTest, GrowsByTheDeficitAlone) {
  Start();
  const DeviceAddress a = Alloc(MiB(3));  // two chunks, one MiB free at the end
  EXPECT_EQ(stats().chunks_created, 2u);
  const DeviceAddress b = Alloc(MiB(5));  // that MiB and two more chunks
  EXPECT_EQ(b, a + MiB(3));
  EXPECT_EQ(stats().chunks_created, 4u);
  EXPECT_EQ(Calls(EntryPoint::mem_set_access) - 1, 2u) << "one per growth, and one when the device was opened";
}

TEST_F(AllocatorTest, FreedNeighboursServeALargerRequest) {
  Start();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(Alloc(MiB(4)));
  EXPECT_EQ(stats().reserved.current, MiB(64));
  for (int i = 4; i < 12; ++i) Free(blocks[static_cast<size_t>(i)]);
  const uint64_t before = DriverCalls();
  EXPECT_EQ(Alloc(MiB(32)), blocks[4]);
  EXPECT_EQ(DriverCalls(), before);
}

TEST_F(AllocatorTest, ScatteredIdleChunksAreMovedTogether) {
  Start();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(Alloc(MiB(4)));
  for (size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  // 32 MiB are free in pieces of 4; the device is full.
  Alloc(MiB(32));
  EXPECT_EQ(stats().chunks_moved, 16u);
  EXPECT_EQ(stats().chunks_created, 32u);
  EXPECT_EQ(stats().reserved.current, MiB(64));
  EXPECT_EQ(stats().live.current, MiB(64));
}

TEST_F(AllocatorTest, LazyCreatesUntilTheLimitAndThenMoves) {
  AllocatorOptions options;
  options.limit = MiB(16);
  Start(SmallDevice(), options);
  const DeviceAddress a = Alloc(MiB(4));
  Alloc(MiB(2));
  Free(a);
  Alloc(MiB(10));  // 4 MiB are idle, and 10 may still be created
  EXPECT_EQ(stats().chunks_moved, 0u);
  EXPECT_EQ(stats().reserved.current, MiB(16));
  Alloc(MiB(3));  // fits the idle 4 MiB
  EXPECT_EQ(stats().reserved.current, MiB(16));
  EXPECT_EQ(AllocFails(MiB(2)).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(AllocatorTest, FrugalMovesBeforeItCreates) {
  AllocatorOptions options;
  options.growth = Growth::kFrugal;
  Start(SmallDevice(), options);
  const DeviceAddress a = Alloc(MiB(4));
  Alloc(MiB(2));
  Free(a);
  Alloc(MiB(10));
  EXPECT_EQ(stats().chunks_moved, 2u);
  EXPECT_EQ(stats().chunks_created, 6u);
  EXPECT_EQ(stats().reserved.current, MiB(12));
}

TEST_F(AllocatorTest, LeastRecentlyFreedMemoryMovesFirst) {
  Start();
  const StreamHandle other = NewStream();
  const DeviceAddress a = Alloc(MiB(8));
  const DeviceAddress gap = Alloc(MiB(2));
  const DeviceAddress b = Alloc(MiB(8));
  Alloc(MiB(46));
  Free(b);
  Free(a);
  Alloc(MiB(8), other);
  EXPECT_FALSE(sim_->IsMapped({b, MiB(8)}));
  EXPECT_TRUE(sim_->IsMapped({a, MiB(8)}));
  EXPECT_TRUE(sim_->IsMapped({gap, MiB(2)}));
}

TEST_F(AllocatorTest, AHoleIsFilledBeforeTheEndIsUsed) {
  Start();
  const DeviceAddress a = Alloc(MiB(8));
  Alloc(MiB(2));
  Free(a);
  ASSERT_TRUE(allocator_->Trim(MiB(2)).ok());
  Check();
  EXPECT_EQ(Alloc(MiB(4)), a);
}

TEST_F(AllocatorTest, DataSurvivesWhileOtherMemoryMoves) {
  Start(SmallRealDevice());
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(Alloc(MiB(4)));
    std::memset(blocks.back().ptr(), i + 1, MiB(4).count());
  }
  for (size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  const DeviceAddress large = Alloc(MiB(32));
  std::memset(large.ptr(), 0xEE, MiB(32).count());
  for (size_t i = 1; i < blocks.size(); i += 2) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[i].ptr());
    for (uint64_t at = 0; at < MiB(4).count(); at += 4096) ASSERT_EQ(bytes[at], i + 1) << "block " << i << " at " << at;
  }
}

TEST_F(AllocatorTest, TrimReleasesIdleMemoryDownToTheTarget) {
  Start();
  const DeviceAddress a = Alloc(MiB(8));
  const DeviceAddress b = Alloc(MiB(8));
  Alloc(MiB(1));
  Free(b);
  Free(a);
  EXPECT_EQ(*allocator_->Trim(MiB(100)), Bytes());
  EXPECT_EQ(*allocator_->Trim(MiB(12)), MiB(6));
  Check();
  EXPECT_FALSE(sim_->IsMapped({b, MiB(2)})) << "least recently freed first";
  EXPECT_TRUE(sim_->IsMapped({a, MiB(8)}));
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(10));
  Check();
  EXPECT_EQ(stats().reserved.current, MiB(2));
  EXPECT_EQ(stats().chunks_released, 8u);
}

TEST_F(AllocatorTest, TrimLeavesMemoryThatQueuedWorkMayUse) {
  Start();
  const StreamHandle stream = NewStream();
  const DeviceAddress a = Alloc(MiB(8), stream);
  Launch(stream, microseconds(100), a, MiB(8));
  Free(a);
  const sim::VirtualTime before = sim_->now();
  EXPECT_EQ(*allocator_->Trim(Bytes()), Bytes());
  EXPECT_EQ(sim_->now(), before);
  sim_->Advance(microseconds(100));
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(8));
  Check();
}

TEST_F(AllocatorTest, TrimTakesPendingMemoryWhoseWorkIsComplete) {
  Start();
  const StreamHandle other = NewStream();
  const DeviceAddress a = Alloc(MiB(8));
  const DeviceAddress b = Alloc(MiB(4));
  RecordUse(a, other);
  Launch(other, microseconds(100), a, MiB(8));
  Free(a);
  Free(b);
  EXPECT_EQ(stats().pending.current, MiB(8));
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(4));
  Check();
  sim_->Advance(microseconds(100));
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(8));
  Check();
  EXPECT_EQ(stats().pending.current, Bytes());
  EXPECT_EQ(stats().reserved.current, Bytes());
}

}  // namespace
}  // namespace expanse

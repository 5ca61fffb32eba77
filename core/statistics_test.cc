// Whether the figures say what happened.

#include <array>
#include <memory>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

class Statistics : public AllocatorTest {
 protected:
  // By entry point, what the driver saw since Start.
  std::array<uint64_t, kEntryPointCount> SeenByDriver() const {
    std::array<uint64_t, kEntryPointCount> calls = sim_->counters().calls;
    for (int i = 0; i < kEntryPointCount; ++i) calls[i] -= before_[i];
    return calls;
  }
  void StartCounting() {
    before_ = sim_->counters().calls;
    counted_before_ = allocator_->GetDriverCalls().calls;
  }
  std::array<uint64_t, kEntryPointCount> CountedByAllocator() const {
    std::array<uint64_t, kEntryPointCount> calls = allocator_->GetDriverCalls().calls;
    for (int i = 0; i < kEntryPointCount; ++i) calls[i] -= counted_before_[i];
    return calls;
  }

 private:
  std::array<uint64_t, kEntryPointCount> before_{};
  std::array<uint64_t, kEntryPointCount> counted_before_{};
};

TEST_F(Statistics, DriverCallsAreThoseThatTheDriverSaw) {
  Start();
  const StreamHandle stream = NewStream();
  StartCounting();
  const DeviceAddress block = Alloc(MiB(30));
  const DeviceAddress other = Alloc(MiB(30), stream);
  Free(block, stream);
  Free(other);
  Free(Alloc(MiB(40)));
  EXPECT_TRUE(allocator_->Trim(Bytes()).ok());
  Alloc(MiB(2));
  EXPECT_TRUE(absl::IsResourceExhausted(AllocFails(MiB(64))));
  EXPECT_EQ(CountedByAllocator(), SeenByDriver());
  EXPECT_EQ(CountedByAllocator()[static_cast<int>(EntryPoint::mem_create)], 33u);
  EXPECT_EQ(stats().driver_calls, allocator_->GetDriverCalls().TotalCalls());
  EXPECT_EQ(stats().driver_time, allocator_->GetDriverCalls().TotalMeasured());
}

TEST_F(Statistics, AllocatorsOfOneDriverCountApart) {
  Start();
  auto second = Allocator::Create(sim_->driver(), {});
  ASSERT_TRUE(second.ok()) << second.status();
  const uint64_t before = allocator_->GetDriverCalls().TotalCalls();
  ASSERT_TRUE((*second)->Allocate(MiB(8), StreamHandle()).ok());
  EXPECT_EQ((*second)->GetDriverCalls().calls[static_cast<int>(EntryPoint::mem_map)], 4u + 1u);  // and Open's probe
  EXPECT_EQ(allocator_->GetDriverCalls().TotalCalls(), before);
}

TEST_F(Statistics, APlaceThatIsFilledAgainIsARefill) {
  Start();
  const StreamHandle thief = NewStream();
  Free(Alloc(MiB(64)));
  EXPECT_EQ(stats().rungs.created, 1u);
  EXPECT_EQ(stats().rungs.moved, 0u);
  Free(Alloc(MiB(4), thief), thief);
  EXPECT_EQ(stats().chunks_moved, 2u);
  EXPECT_EQ(stats().chunks_refilled, 0u) << "the thief's addresses had nothing before";
  Free(Alloc(MiB(64)));
  EXPECT_EQ(stats().chunks_moved, 4u);
  EXPECT_EQ(stats().chunks_refilled, 2u);
  EXPECT_EQ(stats().rungs.created, 1u);
  EXPECT_EQ(stats().rungs.moved, 2u);
  EXPECT_EQ(stats().growths, 3u);
}

TEST_F(Statistics, TheRungsThatARequestClimbedAreCounted) {
  Start();
  const StreamHandle stream = NewStream();
  // 61 MiB and 2 MiB share 32 chunks; 1 MiB of them stays free in the class of large blocks.
  const DeviceAddress large = Alloc(MiB(61));
  Alloc(MiB(2));
  EXPECT_EQ(stats().rungs.other_class, 0u);
  Alloc(MiB(1));
  EXPECT_EQ(stats().rungs.other_class, 1u);
  EXPECT_EQ(stats().rungs.waited, 0u);
  EXPECT_TRUE(absl::IsResourceExhausted(AllocFails(MiB(61))));
  EXPECT_EQ(stats().rungs.failed, 1u);
  EXPECT_EQ(stats().failed_allocations, 1u);

  Launch(stream, std::chrono::milliseconds(1), large, MiB(61));
  Free(large, stream);
  EXPECT_EQ(stats().rungs.collected, 0u);
  Alloc(MiB(61));
  const Stats after = stats();
  EXPECT_EQ(after.rungs.waited, 1u);
  EXPECT_EQ(after.rungs.collected, 1u);
  EXPECT_EQ(after.rungs.synchronized, 0u);
  EXPECT_EQ(after.waits, 1u);
  EXPECT_EQ(after.gpu_stalls.count, 1u);
  EXPECT_EQ(after.lock_stalls.count, 0u) << "there is one thread";
}

TEST_F(Statistics, AStreamHasFiguresOfItsOwn) {
  Start();
  const StreamHandle stream = NewStream();
  const DeviceAddress pending = Alloc(MiB(3), stream);
  Alloc(Bytes(1000), stream);
  Alloc(MiB(5));
  Free(Alloc(MiB(6), stream));
  Launch(StreamHandle(), std::chrono::milliseconds(1), pending, MiB(3));
  Free(pending, StreamHandle());
  const HeapStats mine = allocator_->GetStreamStats(stream);
  EXPECT_EQ(mine.live, Bytes(1000));
  EXPECT_EQ(mine.allocated, Bytes(1024));
  EXPECT_EQ(mine.pending, MiB(3));
  EXPECT_EQ(mine.mapped, MiB(12));  // a small chunk, and five for 3 and 6 MiB in a row
  EXPECT_EQ(mine.free, MiB(12) - MiB(3) - Bytes(1024));
  EXPECT_EQ(mine.largest_free, MiB(7));
  EXPECT_EQ(mine.idle, MiB(6));
  EXPECT_EQ(mine.live_blocks, 1u);
  EXPECT_EQ(mine.pending_blocks, 1u);
  EXPECT_EQ(mine.segments, 2u);
  EXPECT_EQ(allocator_->GetStreamStats(StreamHandle()).live, MiB(5));
  EXPECT_EQ(allocator_->GetStreamStats(NewStream()).segments, 0u);
}

}  // namespace
}  // namespace expanse

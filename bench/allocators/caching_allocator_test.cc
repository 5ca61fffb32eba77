#include "bench/allocators/caching_allocator.h"

#include <chrono>

#include "bench/allocators/rival_test_support.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using std::chrono::microseconds;

class CachingAllocatorTest : public RivalTest {
 protected:
  void SetUp() override {
    SetUpDevice(MiB(200));
    SetUpAllocator("caching");
  }
};

TEST_F(CachingAllocatorTest, SmallRequestsShareASegmentOf2MiB) {
  Allocate(Bytes(1));
  Allocate(KiB(512));
  Allocate(MiB(1));
  EXPECT_EQ(Reserved(), MiB(2));
  EXPECT_EQ(Calls(EntryPoint::mem_alloc), 1);
  EXPECT_EQ(allocator_->figures().live, MiB(1) + KiB(512) + Bytes(1));
  EXPECT_EQ(allocator_->figures().allocated, MiB(1) + KiB(512) + Bytes(512));
}

TEST_F(CachingAllocatorTest, MediumRequestsShareASegmentOf20MiB) {
  Allocate(MiB(2));
  Allocate(MiB(9));
  EXPECT_EQ(Reserved(), MiB(20));
  Allocate(MiB(10));  // 9 MiB are left
  EXPECT_EQ(Reserved(), MiB(30));
}

TEST_F(CachingAllocatorTest, ALargeBlockIsSplitWhereMoreThan1MiBIsLeft) {
  const DeviceAddress first = Allocate(MiB(12));
  Free(first);
  EXPECT_EQ(Allocate(MiB(11)), first);
  EXPECT_EQ(allocator_->figures().allocated, MiB(12));  // 1 MiB is not worth a block
  Free(first);
  EXPECT_EQ(Allocate(MiB(10)), first);
  EXPECT_EQ(allocator_->figures().allocated, MiB(10));
  EXPECT_EQ(allocator_->figures().live, MiB(10));
}

TEST_F(CachingAllocatorTest, AFreedBlockServesTheNextRequestWithoutADriverCall) {
  const DeviceAddress first = Allocate(MiB(50));
  Free(first);
  const uint64_t before = simulator_->counters().TotalCalls();
  EXPECT_EQ(Allocate(MiB(50)), first);
  Free(first);
  EXPECT_EQ(simulator_->counters().TotalCalls(), before);
}

TEST_F(CachingAllocatorTest, StreamsDoNotShareTheCache) {
  const StreamHandle other = NewStream();
  Free(Allocate(MiB(50)));
  Allocate(MiB(50), other);
  EXPECT_EQ(Reserved(), MiB(100));
}

TEST_F(CachingAllocatorTest, IdleSegmentsGoBackWhenMemoryIsShort) {
  Free(Allocate(MiB(50)));
  const DeviceAddress kept = Allocate(MiB(60));
  Allocate(MiB(120));
  EXPECT_EQ(Reserved(), MiB(180));
  EXPECT_EQ(Calls(EntryPoint::mem_free), 1);
  Free(kept);
}

TEST_F(CachingAllocatorTest, APartlyUsedSegmentStaysAndTheRequestFails) {
  const DeviceAddress big = Allocate(MiB(150));
  Free(big);
  const DeviceAddress small = Allocate(MiB(4));  // out of the big segment
  EXPECT_EQ(small, big);
  ExpectOutOfMemory(MiB(160));
  EXPECT_EQ(Reserved(), MiB(150));
  Free(small);
  EXPECT_EQ(Allocate(MiB(160)).is_null(), false);
  EXPECT_EQ(Reserved(), MiB(160));
}

TEST_F(CachingAllocatorTest, ABlockUsedElsewhereWaitsForItsEvents) {
  const StreamHandle other = NewStream();
  const DeviceAddress block = Allocate(MiB(50));
  Work(other, block, MiB(50), microseconds(100'000));
  ASSERT_TRUE(allocator_->RecordUse(block, other).ok());
  Free(block);
  EXPECT_EQ(allocator_->figures().pending, MiB(50));
  EXPECT_EQ(allocator_->figures().live, Bytes());
  EXPECT_NE(Allocate(MiB(50)), block);
  simulator_->Advance(microseconds(200'000));
  Allocate(MiB(20));  // looks into the events, and is served from the block
  EXPECT_EQ(allocator_->figures().pending, Bytes());
  EXPECT_EQ(Reserved(), MiB(100));
}

TEST_F(CachingAllocatorTest, AFreeThatNamesAnotherStreamIsAUseThere) {
  const StreamHandle other = NewStream();
  const DeviceAddress block = Allocate(MiB(50));
  Work(other, block, MiB(50), microseconds(100'000));
  Free(block, other);
  EXPECT_EQ(allocator_->figures().pending, MiB(50));
  EXPECT_NE(Allocate(MiB(50)), block);
}

TEST_F(CachingAllocatorTest, WhenMemoryIsShortEventsAreWaitedForButTheCacheIsNotSearchedAgain) {
  const StreamHandle other = NewStream();
  const DeviceAddress block = Allocate(MiB(150));
  const DeviceAddress part = Allocate(MiB(30));
  Work(other, block, MiB(150), microseconds(100'000));
  ASSERT_TRUE(allocator_->RecordUse(block, other).ok());
  Free(block);
  // Its segment goes back once the event is complete, and a new one of the size asked for is made.
  Allocate(MiB(140));
  EXPECT_EQ(Reserved(), MiB(170));
  EXPECT_GE(simulator_->counters().stalled, microseconds(90'000));
  Free(part);
}

TEST_F(CachingAllocatorTest, TheLimitHoldsAndIdleMemoryMakesRoomUnderIt) {
  allocator_.reset();
  BenchAllocatorOptions options;
  options.limit = MiB(100);
  SetUpAllocator("caching", options);
  const DeviceAddress first = Allocate(MiB(60));
  ExpectOutOfMemory(MiB(50));
  Free(first);
  Allocate(MiB(98));
  EXPECT_EQ(Reserved(), MiB(98));
}

TEST_F(CachingAllocatorTest, FailuresNameTheRequestAndWhatIsHeld) {
  const DeviceAddress held = Allocate(MiB(50));
  auto address = allocator_->Allocate(MiB(180), StreamHandle());
  ASSERT_FALSE(address.ok());
  EXPECT_NE(address.status().message().find("180.00 MiB"), std::string_view::npos) << address.status();
  EXPECT_NE(address.status().message().find("50.00 MiB"), std::string_view::npos) << address.status();
  Free(held);
}

class PreallocatedTest : public RivalTest {
 protected:
  void SetUp() override { SetUpDevice(MiB(200)); }
};

TEST_F(PreallocatedTest, HoldsNineTenthsOfTheDeviceFromTheStart) {
  SetUpAllocator("preallocated");
  EXPECT_EQ(Reserved(), MiB(180));
  EXPECT_EQ(allocator_->figures().peak_live, Bytes());
  Allocate(MiB(100));
  Allocate(MiB(70));
  EXPECT_EQ(Reserved(), MiB(180));
  EXPECT_EQ(Calls(EntryPoint::mem_alloc), 1);
}

TEST_F(PreallocatedTest, TheFirstBlockHasTheSizeAskedFor) {
  BenchAllocatorOptions options;
  options.prealloc = MiB(64);
  SetUpAllocator("preallocated", options);
  EXPECT_EQ(Reserved(), MiB(64));
}

TEST_F(PreallocatedTest, OtherStreamsDoNotSeeTheFirstBlock) {
  SetUpAllocator("preallocated");
  const StreamHandle other = NewStream();
  Allocate(MiB(12), other);
  EXPECT_EQ(Reserved(), MiB(192));
}

TEST_F(PreallocatedTest, WithoutALiveBlockItGoesBackWhole) {
  SetUpAllocator("preallocated");
  Allocate(MiB(190));
  EXPECT_EQ(Reserved(), MiB(190));
}

TEST_F(PreallocatedTest, AFirstBlockThatDoesNotFitIsAnError) {
  BenchAllocatorOptions options;
  options.prealloc = MiB(300);
  EXPECT_TRUE(absl::IsResourceExhausted(CreateBenchAllocator("preallocated", driver(), options).status()));
}

class PreallocatedOnATinyDeviceTest : public RivalTest {};

TEST_F(PreallocatedOnATinyDeviceTest, NineTenthsThatAreTooLittleForASegmentAreNotTaken) {
  SetUpDevice(MiB(11));  // 0.9 of it are 8 MiB, in whole 2 MiB
  SetUpAllocator("preallocated");
  EXPECT_EQ(Reserved(), Bytes());
  Allocate(MiB(1));
  EXPECT_EQ(Reserved(), MiB(2));
}

TEST_F(PreallocatedOnATinyDeviceTest, ADeviceWithoutRoomForAnythingRunsOutOfMemory) {
  SetUpDevice(Bytes(1));
  SetUpAllocator("preallocated");
  ExpectOutOfMemory(Bytes(1));
}

}  // namespace
}  // namespace expanse::bench

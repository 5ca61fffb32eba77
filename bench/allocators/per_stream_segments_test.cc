#include "bench/allocators/per_stream_segments.h"

#include <chrono>
#include <string>

#include "bench/allocators/rival_test_support.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using std::chrono::microseconds;

class PerStreamSegmentsTest : public RivalTest {
 protected:
  void SetUp() override {
    SetUpDevice(MiB(200));
    SetUpAllocator("per-stream-segments");
  }
};

TEST_F(PerStreamSegmentsTest, SmallAndLargeRequestsGrowTheirSegmentsByWholeChunks) {
  Allocate(KiB(4));
  EXPECT_EQ(Reserved(), MiB(2));
  Allocate(MiB(25));
  EXPECT_EQ(Reserved(), MiB(42));
  Allocate(MiB(15));
  EXPECT_EQ(Reserved(), MiB(42));
  EXPECT_EQ(Calls(EntryPoint::mem_create), 3);
  EXPECT_EQ(Calls(EntryPoint::mem_map), 3);
  EXPECT_EQ(Calls(EntryPoint::mem_set_access), 2);  // one for each growth
  EXPECT_EQ(allocator_->figures().chunks_created, 3);
}

TEST_F(PerStreamSegmentsTest, ASegmentTakesNineEighthsOfTheDeviceInAddresses) {
  Allocate(KiB(4));
  EXPECT_EQ(allocator_->figures().peak_address_space, MiB(226));  // 225 in chunks of 2
  Allocate(MiB(4));
  EXPECT_EQ(allocator_->figures().peak_address_space, MiB(226 + 240));
  Allocate(MiB(4), NewStream());
  EXPECT_EQ(allocator_->figures().peak_address_space, MiB(226 + 240 + 240));
}

TEST_F(PerStreamSegmentsTest, ARequestGrowsTheFreeBlockAtTheEnd) {
  const DeviceAddress first = Allocate(MiB(30));
  Free(first);
  EXPECT_EQ(Allocate(MiB(70)), first);
  EXPECT_EQ(Reserved(), MiB(80));
}

TEST_F(PerStreamSegmentsTest, BlocksAreSplitToSize) {
  Allocate(MiB(20) - Bytes(512));
  EXPECT_EQ(allocator_->figures().allocated, MiB(20) - Bytes(512));
  Allocate(MiB(2));
  EXPECT_EQ(Reserved(), MiB(40));
}

TEST_F(PerStreamSegmentsTest, WhenMemoryIsShortEveryWhollyFreeChunkIsReleased) {
  const DeviceAddress a = Allocate(MiB(90));
  const DeviceAddress b = Allocate(MiB(2));
  const DeviceAddress c = Allocate(MiB(50));
  EXPECT_EQ(Reserved(), MiB(160));
  Free(a);
  Free(c);
  EXPECT_EQ(Calls(EntryPoint::mem_unmap), 0);
  const StreamHandle other = NewStream();
  Allocate(MiB(45), other);  // 60 MiB in chunks, where 40 are left
  // Of the first stream only the chunk that b is in stays: [80, 100).
  EXPECT_EQ(Reserved(), MiB(20 + 60));
  EXPECT_EQ(Calls(EntryPoint::mem_unmap), 7);
  EXPECT_EQ(Calls(EntryPoint::mem_release), 7 + 2);  // and the two that were made before the device had no more
  Free(b);
}

TEST_F(PerStreamSegmentsTest, HolesAreFilledFromTheLowestAddressWithRoom) {
  const DeviceAddress a = Allocate(MiB(40));
  const DeviceAddress b = Allocate(MiB(20));
  const DeviceAddress c = Allocate(MiB(40));
  const DeviceAddress d = Allocate(MiB(20));
  Free(a);
  Free(c);
  ExpectOutOfMemory(MiB(190), NewStream());  // unmaps a and c
  EXPECT_EQ(Reserved(), MiB(40));
  EXPECT_EQ(Allocate(MiB(40)), a);
  EXPECT_EQ(Allocate(MiB(30)), c);
  EXPECT_EQ(Reserved(), MiB(120));
  Free(b);
  Free(d);
}

TEST_F(PerStreamSegmentsTest, HolesOnBothSidesOfAFreeBlockAreMappedInTurn) {
  const DeviceAddress a = Allocate(MiB(20));
  const DeviceAddress b = Allocate(MiB(20));
  const DeviceAddress c = Allocate(MiB(20));
  const DeviceAddress d = Allocate(MiB(20));
  Free(a);
  Free(c);
  ExpectOutOfMemory(MiB(190), NewStream());
  Free(b);
  EXPECT_EQ(Reserved(), MiB(40));
  const uint64_t growths = Calls(EntryPoint::mem_set_access);
  EXPECT_EQ(Allocate(MiB(60)), a);
  EXPECT_EQ(Calls(EntryPoint::mem_set_access), growths + 2);
  EXPECT_EQ(Reserved(), MiB(80));
  Free(d);
}

TEST_F(PerStreamSegmentsTest, AnEmptySegmentGivesItsAddressesBack) {
  Free(Allocate(MiB(40)));
  const StreamHandle other = NewStream();
  Allocate(MiB(190), other);
  EXPECT_EQ(Reserved(), MiB(200));
  EXPECT_EQ(Calls(EntryPoint::mem_address_free), 1);
}

TEST_F(PerStreamSegmentsTest, UnmappingWaitsForTheStream) {
  const DeviceAddress a = Allocate(MiB(100));
  Work(StreamHandle(), a, MiB(100), microseconds(500'000));
  Free(a);
  Allocate(MiB(150), NewStream());
  EXPECT_GE(simulator_->counters().stalled, microseconds(400'000));
  EXPECT_EQ(simulator_->hazard_count(), 0);
}

TEST_F(PerStreamSegmentsTest, ARequestLargerThanASegmentCostsNoChunks) {
  ExpectOutOfMemory(GiB(1));
  EXPECT_EQ(Calls(EntryPoint::mem_create), 0);
  EXPECT_EQ(Calls(EntryPoint::mem_address_reserve), 0);
}

TEST_F(PerStreamSegmentsTest, TheLimitHoldsToTheByte) {
  allocator_.reset();
  BenchAllocatorOptions options;
  options.limit = MiB(50);
  SetUpAllocator("per-stream-segments", options);
  Allocate(MiB(25));
  EXPECT_EQ(Reserved(), MiB(40));
  ExpectOutOfMemory(MiB(21));
  EXPECT_EQ(allocator_->figures().peak_reserved, MiB(40));
}

// Every driver call of a growth fails in turn: nothing of it is left, and the same request succeeds afterwards.
TEST_F(PerStreamSegmentsTest, AFailedGrowthLeavesNothing) {
  for (uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 100);
    const uint64_t before = simulator_->FailableCalls();
    simulator_->FailNthCallOfAny(n, abi::kUnknown);
    auto address = allocator_->Allocate(MiB(50), StreamHandle());
    const uint64_t calls = simulator_->FailableCalls() - before;
    simulator_->ClearFaults();
    Check();
    if (calls < n) {  // the fault was beyond the last call
      EXPECT_TRUE(address.ok()) << address.status();
      break;
    }
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInternal) << address.status();
    EXPECT_EQ(Reserved(), Bytes());
    EXPECT_EQ(simulator_->ledger().physical_bytes, Bytes());
  }
}

// A chunk that the driver would not take back is used by the next growth.
TEST_F(PerStreamSegmentsTest, AStrandedChunkIsUsedByTheNextGrowth) {
  simulator_->FailNthCall(EntryPoint::mem_set_access, 1, abi::kUnknown);
  simulator_->FailNthCall(EntryPoint::mem_unmap, 1, abi::kUnknown);
  EXPECT_FALSE(allocator_->Allocate(MiB(50), StreamHandle()).ok());
  Check();
  EXPECT_EQ(Reserved(), MiB(20));
  EXPECT_EQ(simulator_->ledger().physical_bytes, MiB(20));
  Allocate(MiB(50));
  EXPECT_EQ(Reserved(), MiB(60));
  EXPECT_EQ(simulator_->ledger().physical_bytes, MiB(60));
}

// A refusal while memory is given back is reported, and what was given back before it stays so.
TEST_F(PerStreamSegmentsTest, ARefusalToTakeBackKeepsTheBooksRight) {
  struct Case {
    EntryPoint refused;
    uint64_t call;
    Bytes reserved_after;  // of 100 MiB in five chunks
  };
  for (const Case& refusal :
       {Case{EntryPoint::stream_synchronize, 1, MiB(100)}, Case{EntryPoint::mem_unmap, 3, MiB(60)},
        Case{EntryPoint::mem_release, 3, MiB(60)}, Case{EntryPoint::mem_address_free, 1, Bytes()}}) {
    SCOPED_TRACE(std::string(SymbolName(refusal.refused)));
    allocator_.reset();
    BenchAllocatorOptions options;
    options.limit = MiB(120);  // makes memory short without driver calls
    SetUpAllocator("per-stream-segments", options);
    Free(Allocate(MiB(100)));
    const StreamHandle other = NewStream();
    simulator_->FailNthCall(refusal.refused, refusal.call, abi::kUnknown);
    EXPECT_EQ(allocator_->Allocate(MiB(30), other).status().code(), absl::StatusCode::kInternal);
    Check();
    EXPECT_EQ(Reserved(), refusal.reserved_after);
    EXPECT_EQ(simulator_->ledger().physical_bytes, Reserved());
    Free(Allocate(MiB(30), other), other);
    Allocate(MiB(100));
  }
}

}  // namespace
}  // namespace expanse::bench

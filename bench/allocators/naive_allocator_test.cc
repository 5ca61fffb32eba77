#include "bench/allocators/naive_allocator.h"

#include <chrono>

#include "bench/allocators/rival_test_support.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using std::chrono::microseconds;

class NaiveAllocatorTest : public RivalTest {
 protected:
  void SetUp() override {
    SetUpDevice(MiB(64));
    SetUpAllocator("naive");
  }
};

TEST_F(NaiveAllocatorTest, EveryBlockIsADriverAllocation) {
  const DeviceAddress a = Allocate(MiB(8));
  const DeviceAddress b = Allocate(Bytes(100));
  EXPECT_EQ(Calls(EntryPoint::mem_alloc), 2);
  EXPECT_EQ(Reserved(), MiB(8) + Bytes(512));
  EXPECT_EQ(simulator_->ledger().physical_bytes, Reserved());
  Free(a);
  Free(b);
  EXPECT_EQ(Calls(EntryPoint::mem_free), 2);
  EXPECT_EQ(Reserved(), Bytes());
}

TEST_F(NaiveAllocatorTest, FreeWaitsForTheWorkOnTheBlock) {
  const StreamHandle other = NewStream();
  const DeviceAddress block = Allocate(MiB(8));
  ASSERT_TRUE(allocator_->RecordUse(block, other).ok());
  Work(other, block, MiB(8), microseconds(100'000));
  Free(block);
  EXPECT_GE(simulator_->now(), microseconds(100'000));
  EXPECT_EQ(allocator_->figures().peak_pending, Bytes());
}

TEST_F(NaiveAllocatorTest, ARefusedFreeLeavesTheBlockLive) {
  const DeviceAddress block = Allocate(MiB(8));
  simulator_->FailNthCall(EntryPoint::mem_free, 1, abi::kUnknown);
  EXPECT_EQ(allocator_->Free(block, StreamHandle()).code(), absl::StatusCode::kInternal);
  Check();
  EXPECT_EQ(allocator_->figures().live, MiB(8));
  Free(block);
}

TEST_F(NaiveAllocatorTest, TheLimitHolds) {
  allocator_.reset();
  BenchAllocatorOptions options;
  options.limit = MiB(16);
  SetUpAllocator("naive", options);
  const DeviceAddress block = Allocate(MiB(10));
  ExpectOutOfMemory(MiB(10));
  Free(block);
  Allocate(MiB(16));
}

}  // namespace
}  // namespace expanse::bench

// Scenarios in which memory, handles or addresses run out, or the driver fails.

#include <chrono>
#include <string>
#include <vector>

#include "core/allocator_fixture.h"
#include "core/budget.h"

namespace expanse {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

TEST_F(AllocatorTest, OutOfMemoryExplainsItselfAndLosesNothing) {
  AllocatorOptions options;
  options.limit = MiB(32);
  Start(SmallDevice(), options);
  const DeviceAddress a = Alloc(MiB(31));
  const Stats before = stats();
  const absl::Status status = AllocFails(MiB(4));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::string text(status.message());
  EXPECT_THAT(text, HasSubstr("asked for 4.00 MiB"));
  EXPECT_THAT(text, HasSubstr("live 31.00 MiB"));
  EXPECT_THAT(text, HasSubstr("held in partly used chunks 1.00 MiB"));
  EXPECT_THAT(text, HasSubstr("limit 32.00 MiB"));
  EXPECT_THAT(text, HasSubstr("would help: a limit higher by 4.00 MiB"));
  EXPECT_EQ(stats().failed_allocations, 1u);
  EXPECT_EQ(stats().reserved.current, before.reserved.current);
  Alloc(MiB(1));
  Free(a);
  Alloc(MiB(31));
}

TEST_F(AllocatorTest, ChunksCreatedForARequestThatFailsAreReleased) {
  Start();
  sim_->SetTakenByOthers(DeviceOrdinal(0), MiB(16));
  Alloc(MiB(40));
  EXPECT_EQ(AllocFails(MiB(20)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().reserved.current, MiB(40));
  EXPECT_EQ(stats().reserved.peak, MiB(48));
  EXPECT_EQ(sim_->committed(DeviceOrdinal(0)), MiB(40));
}

TEST_F(AllocatorTest, NothingIsCreatedForARequestThatTheDeviceCouldNotHoldBesidesLiveMemory) {
  Start();
  Alloc(MiB(40));
  EXPECT_EQ(AllocFails(MiB(30)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().chunks_created, 20u);
}

TEST_F(AllocatorTest, AnotherProcessesMemoryIsNotCountedOn) {
  Start();
  sim_->SetTakenByOthers(DeviceOrdinal(0), MiB(32));
  const DeviceAddress a = Alloc(MiB(32));
  EXPECT_EQ(AllocFails(MiB(2)).code(), absl::StatusCode::kResourceExhausted);
  sim_->SetTakenByOthers(DeviceOrdinal(0), Bytes());
  Alloc(MiB(30));
  Free(a);
}

TEST_F(AllocatorTest, EveryFailedDriverCallLeavesTheAllocatorWhole) {
  // A growth that creates, moves and maps, with each of its calls failed in turn.
  uint64_t calls = 0;
  for (uint64_t fail = 0; fail <= calls; ++fail) {
    SCOPED_TRACE(fail);
    Start();
    std::vector<DeviceAddress> blocks;
    const StreamHandle stream = NewStream();
    for (int i = 0; i < 7; ++i) blocks.push_back(Alloc(MiB(8), stream));
    for (size_t i = 0; i < blocks.size(); i += 2) {
      Launch(stream, microseconds(100), blocks[i], MiB(8));
      Free(blocks[i]);
    }
    const uint64_t first = sim_->FailableCalls();
    if (fail > 0) sim_->FailNthCallOfAny(fail, abi::kUnknown);
    const absl::StatusOr<DeviceAddress> grown = allocator_->Allocate(MiB(24), StreamHandle());
    if (fail == 0) {
      ASSERT_TRUE(grown.ok()) << grown.status();
      calls = sim_->FailableCalls() - first;
    }
    sim_->ClearFaults();
    Check();
    EXPECT_EQ(stats().chunks_quarantined, 0u);
    if (!grown.ok()) {
      EXPECT_EQ(grown.status().code(), absl::StatusCode::kInternal) << grown.status();
      EXPECT_EQ(stats().reserved.current, MiB(56));
      Alloc(MiB(24));
    }
    TearDown();
    sim_ = nullptr;
    streams_.clear();
  }
  EXPECT_GT(calls, 20u);
}

TEST_F(AllocatorTest, ATwiceFailedUnmapIsQuarantinedAndNeverUsedAgain) {
  Start();
  Alloc(MiB(2));
  sim_->FailNthCall(EntryPoint::mem_set_access, 1, abi::kUnknown);
  sim_->FailNthCall(EntryPoint::mem_unmap, 1, abi::kUnknown);
  EXPECT_EQ(AllocFails(MiB(4)).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(stats().chunks_quarantined, 1u);
  sim_->ClearFaults();
  EXPECT_EQ(AllocFails(MiB(62)).code(), absl::StatusCode::kResourceExhausted);
  Alloc(MiB(58));
}

TEST_F(AllocatorTest, QuarantineInTheOnlyGapLeavesTheRequestToAnotherSegment) {
  Start();
  sim_->FailNthCall(EntryPoint::mem_map, 30, abi::kOutOfMemory);
  sim_->FailNthCall(EntryPoint::mem_unmap, 1, abi::kUnknown);
  EXPECT_EQ(AllocFails(MiB(62)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().chunks_quarantined, 1u);
  Alloc(MiB(62));
}

TEST_F(AllocatorTest, HandlesAreSharedByAllAllocatorsOfTheProcess) {
  Start();
  const uint64_t taken = ProcessHandleBudget().taken();
  const uint64_t limit = ProcessHandleBudget().limit();
  ProcessHandleBudget().set_limit(taken + 3);
  auto other = Allocator::Create(sim_->driver(), {});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE((*other)->Allocate(MiB(4), StreamHandle()).ok());
  EXPECT_THAT(std::string(AllocFails(MiB(4)).message()), HasSubstr("a larger chunk_size"));
  other->reset();
  Alloc(MiB(4));
  ProcessHandleBudget().set_limit(limit);
  allocator_.reset();
  EXPECT_EQ(ProcessHandleBudget().taken(), taken);
}

TEST_F(AllocatorTest, AddressesAreBoundedByTheProcessBudget) {
  const uint64_t limit = ProcessAddressBudget().limit();
  ProcessAddressBudget().set_limit(MiB(192).count());
  Start();
  EXPECT_EQ(stats().address_space.current, MiB(128));
  std::vector<StreamHandle> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(NewStream());
  for (int i = 0; i < 3; ++i) Alloc(MiB(2), streams[i]);
  for (int i = 3; i < 5; ++i) {
    // The segment of a stream with a live block keeps its addresses.
    Free(Alloc(MiB(40), streams[i]));
    Alloc(MiB(2), streams[i]);
  }
  EXPECT_EQ(stats().address_space.current, MiB(192));
  EXPECT_THAT(std::string(AllocFails(MiB(40), streams[5]).message()), HasSubstr("address budget"));
  ProcessAddressBudget().set_limit(limit);
  Alloc(MiB(40), streams[5]);
}

}  // namespace
}  // namespace expanse

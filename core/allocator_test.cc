#include "core/allocator.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <limits>

#include "core/allocator_fixture.h"
#include "core/budget.h"

namespace expanse {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

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

// --- Streams

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

// --- Errors

TEST_F(AllocatorTest, OnlyLiveBlocksCanBeFreed) {
  Start();
  const DeviceAddress a = Alloc(MiB(4));
  const DeviceAddress b = Alloc(MiB(4));
  Free(b);
  const auto refusal = [&](DeviceAddress address) {
    const absl::Status status = allocator_->Free(address);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(allocator_->RecordUse(address, StreamHandle()).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(ToString(address)));
    Check();
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(DeviceAddress()), HasSubstr("null"));
  EXPECT_THAT(refusal(DeviceAddress(0x1234)), HasSubstr("not in any range"));
  EXPECT_THAT(refusal(a + Bytes(512)), HasSubstr("inside a live block"));
  EXPECT_THAT(refusal(b), HasSubstr("free memory"));
  EXPECT_THAT(refusal(a + MiB(16)), HasSubstr("nothing is mapped"));
  EXPECT_EQ(stats().live.current, MiB(4));
}

TEST_F(AllocatorTest, NonsensicalSizesAreRefusedWithoutADriverCall) {
  Start();
  const uint64_t before = DriverCalls();
  EXPECT_EQ(AllocFails(Bytes()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AllocFails(MiB(64) + Bytes(1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AllocFails(Bytes(~uint64_t{0})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DriverCalls(), before);
  EXPECT_EQ(stats().failed_allocations, 0u);
}

TEST_F(AllocatorTest, NonsensicalOptionsAreNamed) {
  Start();
  const auto message = [&](const AllocatorOptions& options) {
    const auto allocator = Allocator::Create(sim_->driver(), options);
    EXPECT_EQ(allocator.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(allocator.status().message());
  };
  AllocatorOptions options;
  options.chunk_size = MiB(3);
  EXPECT_THAT(message(options), HasSubstr("chunk_size"));
  options.chunk_size = MiB(66);
  EXPECT_THAT(message(options), HasSubstr("chunk_size"));
  options = {};
  options.limit = MiB(1);
  EXPECT_THAT(message(options), HasSubstr("limit"));
  options = {};
  options.address_space_multiple = 0;
  EXPECT_THAT(message(options), HasSubstr("address_space_multiple"));
}

TEST_F(AllocatorTest, AnEnormousMultipleReservesWhatTheBudgetHas) {
  AllocatorOptions options;
  options.address_space_multiple = std::numeric_limits<int>::max();
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = GiB(80);
  Start(config, options);
  EXPECT_GE(stats().address_space.current, GiB(80));
  EXPECT_LE(stats().address_space.current, kAddressBudget);
}

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
  EXPECT_THAT(text, HasSubstr("would help: a higher limit"));
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
  for (int i = 0; i < 4; ++i) streams.push_back(NewStream());
  Alloc(MiB(2), streams[0]);
  Alloc(MiB(2), streams[1]);
  Alloc(MiB(2), streams[2]);
  EXPECT_THAT(std::string(AllocFails(MiB(2), streams[3]).message()), HasSubstr("address budget"));
  ProcessAddressBudget().set_limit(limit);
  Alloc(MiB(2), streams[3]);
}

// --- Trim

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

// --- Fork

TEST_F(AllocatorTest, AForkedChildIsToldSoAndTouchesNothing) {
  Start();
  const DeviceAddress a = Alloc(MiB(2));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool refused =
        allocator_->Allocate(MiB(2), StreamHandle()).status().code() == absl::StatusCode::kFailedPrecondition;
    const bool ignored = allocator_->Free(a).ok();
    allocator_.reset();
    _exit(refused && ignored ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(stats().live_blocks, 1u);
  Free(a);
}

}  // namespace
}  // namespace expanse

#include "vmm/chunk_pool.h"

#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;

constexpr DeviceAddress kSomewhere = DeviceAddress(0x7f0000000000);

class ChunkPoolTest : public SimulatedDeviceTest {
 protected:
  std::unique_ptr<ChunkPool> MakePool(ChunkPoolOptions options = {}) {
    return std::make_unique<ChunkPool>(*device, options);
  }
  void Check(const ChunkPool& pool) {
    EXPECT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
    EXPECT_EQ(simulator->ledger().handles, pool.chunks().count());
    EXPECT_EQ(simulator->committed(DeviceOrdinal(0)), pool.bytes());
  }
};

TEST_F(ChunkPoolTest, CreatedChunksAreSpare) {
  auto pool = MakePool();
  EXPECT_TRUE(pool->FindSpare(kGranule).is_none());
  ASSERT_TRUE(pool->Create(ChunkCount(3), kGranule).ok());
  Check(*pool);
  EXPECT_EQ(pool->chunks(ChunkState::kSpare), ChunkCount(3));
  EXPECT_EQ(pool->bytes(), kGranule * 3);
  EXPECT_EQ(pool->spare(kGranule), ChunkCount(3));
  EXPECT_EQ(Calls(EntryPoint::mem_create), 3u);
  const ChunkId id = pool->FindSpare(kGranule);
  ASSERT_FALSE(id.is_none());
  EXPECT_EQ(pool->state(id), ChunkState::kSpare);
  EXPECT_EQ(pool->size(id), kGranule);
  EXPECT_TRUE(pool->range(id).size.is_zero());
}

TEST_F(ChunkPoolTest, SizesAreKeptApart) {
  auto pool = MakePool();
  ASSERT_TRUE(pool->Create(ChunkCount(2), kGranule).ok());
  ASSERT_TRUE(pool->Create(ChunkCount(1), kGranule * 4).ok());
  Check(*pool);
  EXPECT_EQ(pool->spare(kGranule), ChunkCount(2));
  EXPECT_EQ(pool->spare(kGranule * 4), ChunkCount(1));
  EXPECT_EQ(pool->spare(kGranule * 2), ChunkCount(0));
  EXPECT_EQ(pool->size(pool->FindSpare(kGranule * 4)), kGranule * 4);
}

TEST_F(ChunkPoolTest, CreationIsAllOrNothing) {
  auto pool = MakePool();
  ASSERT_TRUE(pool->Create(ChunkCount(2), kGranule).ok());
  simulator->FailNthCall(EntryPoint::mem_create, 3, abi::kOutOfMemory);
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Create(ChunkCount(4), kGranule)));
  Check(*pool);
  EXPECT_EQ(pool->chunks(), ChunkCount(2));
  EXPECT_EQ(pool->created(), ChunkCount(4));
  EXPECT_EQ(pool->released(), ChunkCount(2));
}

TEST_F(ChunkPoolTest, WhatTheDriverRefusesIsNamed) {
  auto pool = MakePool();
  const absl::Status status = pool->Create(ChunkCount(kTestDeviceMemory / kGranule + 1), kGranule);
  Check(*pool);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuMemCreate"));
  EXPECT_EQ(pool->chunks(), ChunkCount(0));
}

TEST_F(ChunkPoolTest, LimitsAreCheckedBeforeAnyDriverCall) {
  ChunkPoolOptions options;
  options.limit = kGranule * 4;
  options.max_chunks = ChunkCount(3);
  auto pool = MakePool(options);
  const absl::Status bytes = pool->Create(ChunkCount(1), kGranule * 5);
  EXPECT_TRUE(absl::IsResourceExhausted(bytes));
  EXPECT_THAT(std::string(bytes.message()), HasSubstr("8.00 MiB"));
  const absl::Status chunks = pool->Create(ChunkCount(4), kGranule);
  EXPECT_TRUE(absl::IsResourceExhausted(chunks));
  EXPECT_THAT(std::string(chunks.message()), HasSubstr("3 chunks"));
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Create(ChunkCount(uint64_t{1} << 62), kGranule)));
  EXPECT_EQ(Calls(EntryPoint::mem_create), 0u);

  EXPECT_TRUE(pool->Create(ChunkCount(3), kGranule).ok());
  EXPECT_EQ(pool->bytes_left(), kGranule);
  EXPECT_EQ(pool->chunks_left(), ChunkCount(0));
  Check(*pool);
}

TEST_F(ChunkPoolTest, LimitMayDropBelowWhatIsHeld) {
  auto pool = MakePool();
  ASSERT_TRUE(pool->Create(ChunkCount(4), kGranule).ok());
  pool->set_limit(kGranule * 2);
  EXPECT_EQ(pool->bytes_left(), Bytes(0));
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Create(ChunkCount(1), kGranule)));
  EXPECT_TRUE(pool->ReleaseSpare(kGranule * 3).status.ok());
  EXPECT_EQ(pool->bytes_left(), kGranule);
  EXPECT_TRUE(pool->Create(ChunkCount(1), kGranule).ok());
  Check(*pool);
}

TEST_F(ChunkPoolTest, SizeOffTheGranularityIsInvalid) {
  auto pool = MakePool();
  EXPECT_TRUE(absl::IsInvalidArgument(pool->Create(ChunkCount(1), kGranule + KiB(4))));
  EXPECT_TRUE(absl::IsInvalidArgument(pool->Create(ChunkCount(1), Bytes(0))));
}

TEST_F(ChunkPoolTest, ReleaseTakesTheLargestFirstAndStopsWhenEnough) {
  auto pool = MakePool();
  ASSERT_TRUE(pool->Create(ChunkCount(3), kGranule).ok());
  ASSERT_TRUE(pool->Create(ChunkCount(1), kGranule * 4).ok());
  ChunkProgress progress = pool->ReleaseSpare(kGranule * 5);
  EXPECT_TRUE(progress.status.ok());
  EXPECT_EQ(progress.chunks, ChunkCount(2));
  EXPECT_EQ(progress.bytes, kGranule * 5);
  Check(*pool);
  progress = pool->ReleaseSpare(GiB(1));
  EXPECT_TRUE(progress.status.ok());
  EXPECT_EQ(progress.chunks, ChunkCount(2));
  EXPECT_EQ(pool->chunks(), ChunkCount(0));
  Check(*pool);
}

TEST_F(ChunkPoolTest, ReleaseTakesNoMoreThanItHasTo) {
  auto pool = MakePool();
  ASSERT_TRUE(pool->Create(ChunkCount(1), kGranule * 16).ok());
  ASSERT_TRUE(pool->Create(ChunkCount(2), kGranule * 2).ok());
  EXPECT_EQ(pool->ReleaseSpare(kGranule * 3, ReleaseBound::kAtMost).bytes, kGranule * 2);
  EXPECT_EQ(pool->ReleaseSpare(kGranule, ReleaseBound::kAtMost).bytes, Bytes());
  EXPECT_EQ(pool->ReleaseSpare(kGranule).bytes, kGranule * 2) << "the smallest that covers it";
  EXPECT_EQ(pool->ReleaseSpare(kGranule).bytes, kGranule * 16) << "there is nothing smaller left";
  Check(*pool);
}

TEST_F(ChunkPoolTest, ReleaseLeavesMappedChunksAlone) {
  auto pool = MakePool();
  ASSERT_TRUE(pool->Create(ChunkCount(2), kGranule).ok());
  const ChunkId id = pool->FindSpare(kGranule);
  pool->MarkMapped(id, kSomewhere);
  EXPECT_EQ(pool->ReleaseSpare(GiB(1)).chunks, ChunkCount(1));
  Check(*pool);
  EXPECT_EQ(pool->state(id), ChunkState::kMapped);
  EXPECT_EQ(pool->range(id), (AddressRange{kSomewhere, kGranule}));
  pool->MarkSpare(id);
  Check(*pool);
}

TEST_F(ChunkPoolTest, RefusedReleaseQuarantinesAndGoesOn) {
  auto pool = MakePool();
  ASSERT_TRUE(pool->Create(ChunkCount(3), kGranule).ok());
  simulator->FailNthCall(EntryPoint::mem_release, 1, abi::kUnknown);
  const ChunkProgress progress = pool->ReleaseSpare(GiB(1));
  EXPECT_TRUE(absl::IsInternal(progress.status));
  EXPECT_EQ(progress.chunks, ChunkCount(2));
  Check(*pool);
  EXPECT_EQ(pool->chunks(ChunkState::kQuarantined), ChunkCount(1));
  EXPECT_EQ(pool->bytes(), kGranule);  // still ours, so still counted
  EXPECT_TRUE(pool->FindSpare(kGranule).is_none());
  // The destructor tries once more.
}

TEST_F(ChunkPoolTest, QuarantinedChunksAreNeverSpareAgain) {
  auto pool = MakePool();
  ASSERT_TRUE(pool->Create(ChunkCount(3), kGranule).ok());
  const ChunkId last = pool->FindSpare(kGranule);
  pool->Quarantine(last);
  Check(*pool);
  EXPECT_NE(pool->FindSpare(kGranule), last);
  pool->Quarantine(last);
  Check(*pool);
  EXPECT_EQ(pool->chunks(ChunkState::kQuarantined), ChunkCount(1));
  EXPECT_EQ(pool->ReleaseSpare(GiB(1)).chunks, ChunkCount(2));
  EXPECT_EQ(pool->chunks(), ChunkCount(1));
}

TEST_F(ChunkPoolTest, IdsAreUsedAgain) {
  auto pool = MakePool();
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(pool->Create(ChunkCount(4), kGranule).ok());
    EXPECT_LT(pool->FindSpare(kGranule).index(), 4u);
    ASSERT_TRUE(pool->ReleaseSpare(GiB(1)).status.ok());
    Check(*pool);
  }
  EXPECT_EQ(pool->created(), ChunkCount(40));
  EXPECT_EQ(pool->released(), ChunkCount(40));
}

TEST_F(ChunkPoolTest, KindReachesTheDriver) {
  ChunkPoolOptions options;
  options.kind.posix_fd = true;
  auto pool = MakePool(options);
  ASSERT_TRUE(pool->Create(ChunkCount(1), kGranule).ok());
  abi::AllocationProp prop{};
  ASSERT_EQ(simulator->driver().mem_get_allocation_properties(&prop, pool->handle(pool->FindSpare(kGranule))),
            abi::kSuccess);
  EXPECT_EQ(prop.requested_handle_types, abi::kHandlePosixFd);
}

TEST(ChunkPool, EveryFailureIsReportedAndUndone) {
  FailEachCallInTurn(SmallConfig(), [](sim::Simulator& simulator) -> absl::Status {
    auto device = Device::Open(simulator.driver(), DeviceOrdinal(0));
    if (!device.ok()) return device.status();
    ChunkPool pool(**device, ChunkPoolOptions());
    absl::Status status = pool.Create(ChunkCount(4), kGranule);
    EXPECT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
    EXPECT_EQ(pool.chunks(), ChunkCount(status.ok() ? 4 : 0));
    if (!status.ok()) return status;
    const ChunkProgress progress = pool.ReleaseSpare(kGranule * 2);
    EXPECT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
    return progress.status;
  });
}

}  // namespace
}  // namespace expanse

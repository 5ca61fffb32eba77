#include "vmm/mapping.h"

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;

class MappingTest : public SimulatedDeviceTest {
 protected:
  void SetUp() override {
    SimulatedDeviceTest::SetUp();
    Prepare();
  }
  void Prepare() {
    auto reserved = Reservation::Reserve(device->driver(), kGranule * 64, kGranule);
    ASSERT_TRUE(reserved.ok());
    reservation = std::move(*reserved);
    pool.emplace(*device, ChunkPoolOptions());
    ASSERT_TRUE(pool->Create(ChunkCount(8), kGranule).ok());
    simulator->ResetCounters();
  }
  void TearDown() override {
    pool.reset();
    reservation = Reservation();
    SimulatedDeviceTest::TearDown();
  }

  // The address of the n-th granule of the reservation.
  [[nodiscard]] DeviceAddress At(uint64_t n) const { return reservation.range().begin + kGranule * n; }
  [[nodiscard]] AddressRange Range(uint64_t n, uint64_t count) const { return {At(n), kGranule * count}; }

  // Maps one chunk at each of the given places and commits.
  std::vector<ChunkId> MapAt(const std::vector<uint64_t>& places) {
    MapTransaction growth(*pool, reservation);
    std::vector<ChunkId> ids;
    for (const uint64_t place : places) {
      auto id = growth.Map(At(place), kGranule);
      EXPECT_TRUE(id.ok()) << id.status();
      if (id.ok()) ids.push_back(*id);
    }
    const absl::Status status = growth.Commit();
    EXPECT_TRUE(status.ok()) << status;
    Check();
    return ids;
  }
  void Check() {
    EXPECT_TRUE(pool->CheckInvariants().ok()) << pool->CheckInvariants();
    EXPECT_EQ(simulator->ledger().mappings,
              pool->chunks(ChunkState::kMapped).count() + pool->chunks(ChunkState::kQuarantined).count());
  }

  Reservation reservation;
  std::optional<ChunkPool> pool;
};

TEST_F(MappingTest, CommittedChunksAreMappedAndAccessible) {
  const std::vector<ChunkId> ids = MapAt({3, 4, 5});
  EXPECT_TRUE(simulator->IsMapped(Range(3, 3)));
  EXPECT_FALSE(simulator->IsMapped(Range(2, 1)));
  EXPECT_FALSE(simulator->IsMapped(Range(6, 1)));
  EXPECT_EQ(pool->range(ids[1]), Range(4, 1));
  EXPECT_EQ(pool->chunks(ChunkState::kMapped), ChunkCount(3));
  EXPECT_EQ(pool->chunks(ChunkState::kSpare), ChunkCount(5));
}

TEST_F(MappingTest, AccessIsSetOncePerContiguousRun) {
  MapAt({4, 6, 5, 20, 21, 40});
  EXPECT_EQ(Calls(EntryPoint::mem_map), 6u);
  EXPECT_EQ(Calls(EntryPoint::mem_set_access), 3u);
  EXPECT_EQ(simulator->counters().TotalCalls(), 9u);
}

TEST_F(MappingTest, GrowthSetsAccessOnlyWhereItGrew) {
  MapAt({0, 1});
  simulator->ResetCounters();
  MapAt({2});
  EXPECT_EQ(simulator->counters().TotalCalls(), 2u);
  EXPECT_TRUE(simulator->IsMapped(Range(0, 3)));
}

TEST_F(MappingTest, NothingIsMappedWithoutCommit) {
  {
    MapTransaction growth(*pool, reservation);
    ASSERT_TRUE(growth.Map(At(0), kGranule).ok());
    ASSERT_TRUE(growth.Map(At(1), kGranule).ok());
    EXPECT_EQ(pool->chunks(ChunkState::kMapped), ChunkCount(2));
  }
  Check();
  EXPECT_EQ(pool->chunks(ChunkState::kSpare), ChunkCount(8));
  EXPECT_EQ(Calls(EntryPoint::mem_unmap), 2u);
  EXPECT_EQ(Calls(EntryPoint::mem_set_access), 0u);
}

TEST_F(MappingTest, EmptyTransactionCommitsWithoutADriverCall) {
  MapTransaction growth(*pool, reservation);
  EXPECT_TRUE(growth.Commit().ok());
  EXPECT_EQ(simulator->counters().TotalCalls(), 0u);
}

TEST_F(MappingTest, FailedMapUndoesTheOthers) {
  MapTransaction growth(*pool, reservation);
  ASSERT_TRUE(growth.Map(At(0), kGranule).ok());
  ASSERT_TRUE(growth.Map(At(1), kGranule).ok());
  simulator->FailNthCall(EntryPoint::mem_map, 1, abi::kOutOfMemory);
  EXPECT_TRUE(absl::IsResourceExhausted(growth.Map(At(2), kGranule).status()));
  Check();
  EXPECT_EQ(pool->chunks(ChunkState::kSpare), ChunkCount(8));
  EXPECT_TRUE(growth.quarantined().empty());
  EXPECT_TRUE(absl::IsFailedPrecondition(growth.Map(At(3), kGranule).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(growth.Commit()));
  EXPECT_EQ(Calls(EntryPoint::mem_unmap), 2u);
}

TEST_F(MappingTest, FailedAccessUndoesEveryRun) {
  MapTransaction growth(*pool, reservation);
  for (const uint64_t place : {0, 1, 10, 20}) ASSERT_TRUE(growth.Map(At(place), kGranule).ok());
  simulator->FailNthCall(EntryPoint::mem_set_access, 2, abi::kUnknown);
  EXPECT_TRUE(absl::IsInternal(growth.Commit()));
  Check();
  EXPECT_EQ(simulator->ledger().mappings, 0u);
  EXPECT_EQ(Calls(EntryPoint::mem_set_access), 2u);
  EXPECT_EQ(Calls(EntryPoint::mem_unmap), 4u);
}

TEST_F(MappingTest, EarlierMappingsSurviveALaterFailure) {
  MapAt({0, 1});
  {
    MapTransaction growth(*pool, reservation);
    ASSERT_TRUE(growth.Map(At(2), kGranule).ok());
    simulator->FailNthCall(EntryPoint::mem_set_access, 1, abi::kUnknown);
    EXPECT_FALSE(growth.Commit().ok());
  }
  Check();
  EXPECT_TRUE(simulator->IsMapped(Range(0, 2)));
  EXPECT_FALSE(simulator->IsMapped(Range(2, 1)));
}

TEST_F(MappingTest, WhatCannotBeUndoneIsQuarantined) {
  MapTransaction growth(*pool, reservation);
  ASSERT_TRUE(growth.Map(At(0), kGranule).ok());
  auto stuck = growth.Map(At(1), kGranule);
  ASSERT_TRUE(stuck.ok());
  ASSERT_TRUE(growth.Map(At(2), kGranule).ok());
  simulator->FailNthCall(EntryPoint::mem_set_access, 1, abi::kUnknown);
  simulator->FailNthCall(EntryPoint::mem_unmap, 2, abi::kUnknown);  // in reverse: place 2, then 1
  EXPECT_FALSE(growth.Commit().ok());
  ASSERT_EQ(growth.quarantined().size(), 1u);
  EXPECT_EQ(growth.quarantined()[0].chunk, *stuck);
  EXPECT_EQ(growth.quarantined()[0].range, Range(1, 1));
  EXPECT_EQ(pool->state(*stuck), ChunkState::kQuarantined);
  EXPECT_EQ(pool->chunks(ChunkState::kSpare), ChunkCount(7));
  Check();
  // The pool's destructor unmaps it when the driver is well again.
}

TEST_F(MappingTest, StickyErrorQuarantinesEverythingAndEndsNothing) {
  MapTransaction growth(*pool, reservation);
  ASSERT_TRUE(growth.Map(At(0), kGranule).ok());
  ASSERT_TRUE(growth.Map(At(1), kGranule).ok());
  simulator->MakeSticky(abi::kIllegalAddress);
  EXPECT_TRUE(absl::IsInternal(growth.Commit()));
  EXPECT_EQ(growth.quarantined().size(), 2u);
  EXPECT_EQ(pool->chunks(ChunkState::kQuarantined), ChunkCount(2));
  EXPECT_TRUE(pool->CheckInvariants().ok()) << pool->CheckInvariants();
  simulator->ResetStickyError();
}

TEST_F(MappingTest, PlacesOutsideTheReservationAreRefusedWithoutADriverCall) {
  for (const DeviceAddress address : {At(64), At(0) - kGranule, DeviceAddress(0)}) {
    MapTransaction growth(*pool, reservation);
    EXPECT_TRUE(absl::IsInvalidArgument(growth.Map(address, kGranule).status()));
  }
  MapTransaction growth(*pool, reservation);
  EXPECT_TRUE(absl::IsInvalidArgument(growth.Map(At(63), kGranule * 2).status()));
  EXPECT_EQ(simulator->counters().TotalCalls(), 0u);
}

TEST_F(MappingTest, WithoutASpareChunkOfTheSizeNothingHappens) {
  MapTransaction growth(*pool, reservation);
  const auto id = growth.Map(At(0), kGranule * 2);
  EXPECT_TRUE(absl::IsNotFound(id.status())) << id.status();
  EXPECT_EQ(simulator->counters().TotalCalls(), 0u);
}

TEST_F(MappingTest, OccupiedPlaceIsTheDriversErrorAndChangesNothing) {
  MapAt({0});
  MapTransaction growth(*pool, reservation);
  EXPECT_TRUE(absl::IsInvalidArgument(growth.Map(At(0), kGranule).status()));
  Check();
  EXPECT_TRUE(simulator->IsMapped(Range(0, 1)));
}

TEST_F(MappingTest, ChunksOfSeveralSizesMakeOneRun) {
  ASSERT_TRUE(pool->Create(ChunkCount(1), kGranule * 4).ok());
  simulator->ResetCounters();
  MapTransaction growth(*pool, reservation);
  ASSERT_TRUE(growth.Map(At(1), kGranule * 4).ok());
  ASSERT_TRUE(growth.Map(At(0), kGranule).ok());
  ASSERT_TRUE(growth.Map(At(5), kGranule).ok());
  ASSERT_TRUE(growth.Commit().ok());
  EXPECT_EQ(Calls(EntryPoint::mem_set_access), 1u);
  EXPECT_TRUE(simulator->IsMapped(Range(0, 6)));
}

TEST_F(MappingTest, UnmapTakesOneCallPerRunInWhateverOrder) {
  const std::vector<ChunkId> ids = MapAt({0, 1, 2, 10, 11});
  simulator->ResetCounters();
  const ChunkProgress progress =
      UnmapChunks(*pool, reservation, std::vector<ChunkId>{ids[4], ids[1], ids[0], ids[3], ids[2]});
  EXPECT_TRUE(progress.status.ok()) << progress.status;
  EXPECT_EQ(progress.chunks, ChunkCount(5));
  EXPECT_EQ(progress.bytes, kGranule * 5);
  EXPECT_EQ(simulator->counters().TotalCalls(), 2u);
  EXPECT_EQ(pool->chunks(ChunkState::kSpare), ChunkCount(8));
  Check();
}

TEST_F(MappingTest, UnmapLeavesNeighboursAlone) {
  const std::vector<ChunkId> ids = MapAt({0, 1, 2});
  EXPECT_TRUE(UnmapChunks(*pool, reservation, {ids[1]}).status.ok());
  Check();
  EXPECT_TRUE(simulator->IsMapped(Range(0, 1)));
  EXPECT_FALSE(simulator->IsMapped(Range(1, 1)));
  EXPECT_TRUE(simulator->IsMapped(Range(2, 1)));
}

TEST_F(MappingTest, RefusedUnmapAssumesNothing) {
  const std::vector<ChunkId> ids = MapAt({0, 1, 10, 11, 20});
  simulator->FailNthCall(EntryPoint::mem_unmap, 2, abi::kUnknown);
  const ChunkProgress progress = UnmapChunks(*pool, reservation, ids);
  EXPECT_TRUE(absl::IsInternal(progress.status));
  EXPECT_THAT(std::string(progress.status.message()), HasSubstr("cuMemUnmap(address=0x"));
  EXPECT_EQ(progress.chunks, ChunkCount(2));
  EXPECT_EQ(pool->state(ids[0]), ChunkState::kSpare);
  EXPECT_EQ(pool->state(ids[2]), ChunkState::kMapped);
  EXPECT_EQ(pool->state(ids[4]), ChunkState::kMapped);
  Check();
  EXPECT_TRUE(simulator->IsMapped(Range(10, 2)));
}

TEST_F(MappingTest, UnmapRefusesWhatIsNotMappedHereBeforeAnyDriverCall) {
  const std::vector<ChunkId> ids = MapAt({0});
  auto other = Reservation::Reserve(device->driver(), kGranule * 4, kGranule);
  ASSERT_TRUE(other.ok());
  simulator->ResetCounters();
  EXPECT_TRUE(absl::IsInvalidArgument(UnmapChunks(*pool, *other, ids).status));
  const ChunkId spare = pool->FindSpare(kGranule);
  EXPECT_TRUE(absl::IsInvalidArgument(UnmapChunks(*pool, reservation, {ids[0], spare}).status));
  EXPECT_EQ(simulator->counters().TotalCalls(), 0u);
  EXPECT_TRUE(simulator->IsMapped(Range(0, 1)));
}

TEST_F(MappingTest, AMovedChunkKeepsItsBytesAndCostsThreeCalls) {
  const std::vector<ChunkId> ids = MapAt({7});
  std::memset(At(7).ptr(), 0x5a, kGranule.count());
  simulator->ResetCounters();
  ASSERT_TRUE(UnmapChunks(*pool, reservation, ids).status.ok());
  const std::vector<ChunkId> moved = MapAt({50});
  EXPECT_EQ(moved, ids);
  EXPECT_EQ(simulator->counters().TotalCalls(), 3u);
  const auto* bytes = static_cast<const unsigned char*>(At(50).ptr());
  EXPECT_EQ(bytes[0], 0x5a);
  EXPECT_EQ(bytes[kGranule.count() - 1], 0x5a);
}

absl::Status GrowMoveAndTrim(sim::Simulator& simulator) {
  auto device = Device::Open(simulator.driver(), DeviceOrdinal(0));
  if (!device.ok()) return device.status();
  auto reservation = Reservation::Reserve((*device)->driver(), kGranule * 16, kGranule);
  if (!reservation.ok()) return reservation.status();
  absl::Status status;
  {
    ChunkPool pool(**device, ChunkPoolOptions());
    status = pool.Create(ChunkCount(5), kGranule);
    if (!status.ok()) return status;
    std::vector<ChunkId> ids;
    {
      MapTransaction growth(pool, *reservation);
      for (const uint64_t place : {0, 1, 2, 8, 9}) {
        auto id = growth.Map(reservation->range().begin + kGranule * place, kGranule);
        EXPECT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
        if (!id.ok()) return id.status();
        ids.push_back(*id);
      }
      status = growth.Commit();
      EXPECT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
      EXPECT_EQ(pool.chunks(ChunkState::kMapped), ChunkCount(status.ok() ? 5 : 0));
      if (!status.ok()) return status;
    }
    ChunkProgress progress = UnmapChunks(pool, *reservation, ids);
    EXPECT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
    if (!progress.status.ok()) return progress.status;
    status = pool.ReleaseSpare(kGranule * 5).status;
    EXPECT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
    if (!status.ok()) return status;
  }
  return reservation->Free();
}

TEST(Mapping, EveryFailureIsReportedAndUndone) { FailEachCallInTurn(SmallConfig(), &GrowMoveAndTrim); }

TEST(Mapping, EveryFailureIsReportedAndUndoneWithTheOtherQuirks) {
  sim::Config config = SmallConfig();
  config.memory = sim::MemoryMode::kAccounting;
  config.quirks.unmap_hole_is_partial = true;
  config.quirks.unmap_across_reservations = true;
  config.quirks.set_access_subrange = true;
  config.quirks.address_free_live = true;
  config.quirks.vmm_needs_context = true;
  config.quirks.honour_address_hints = false;
  config.quirks.context_free_calls_see_sticky = false;
  FailEachCallInTurn(config, &GrowMoveAndTrim);
}

}  // namespace
}  // namespace expanse

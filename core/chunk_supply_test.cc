#include "core/chunk_supply.h"

#include <optional>

#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

// On a device that has room for 32 chunks.
class ChunkSupplyTest : public SimulatedDeviceTest {
 protected:
  void Make(Bytes limit = GiB(1)) { supply_.emplace(*device, kGranule, limit, budget_); }
  // Up to `count` chunks of the smallest size, until one is refused.
  ChunkProgress Create(uint64_t count) {
    ChunkProgress progress;
    while (progress.chunks.count() < count && progress.status.ok()) {
      progress.status = supply_->Create(kGranule);
      if (progress.status.ok()) progress.chunks += ChunkCount(1);
      Check();
    }
    return progress;
  }
  void Check() const {
    ASSERT_EQ(supply_->CheckInvariants(), absl::OkStatus());
    ASSERT_EQ(budget_.taken(), supply_->pool().chunks().count());
  }
  void TearDown() override {
    supply_.reset();
    EXPECT_EQ(budget_.taken(), 0u);
    SimulatedDeviceTest::TearDown();
  }

  Budget budget_{100};
  std::optional<ChunkSupply> supply_;
};

TEST_F(ChunkSupplyTest, CreatesWithinTheTightestOfLimitAndBudget) {
  Make(MiB(10));
  EXPECT_EQ(supply_->Creatable(1), 5u);
  ASSERT_TRUE(budget_.TryTake(97));
  EXPECT_EQ(supply_->Creatable(1), 3u);
  EXPECT_EQ(supply_->Creatable(2), 5u) << "three handles are enough for chunks of 2, 2 and 1";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(supply_->Create(kGranule), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(supply_->Create(kGranule)));
  EXPECT_EQ(supply_->Creatable(1), 0u);
  budget_.Give(97);
  Check();
  EXPECT_EQ(Create(5).chunks, ChunkCount(2));
  EXPECT_EQ(supply_->spare(), kGranule * 5);
  EXPECT_EQ(supply_->Creatable(1), 0u);
  EXPECT_FALSE(supply_->refused()) << "limit and budget are not the device";
}

TEST_F(ChunkSupplyTest, TheDeviceHasRefusedOnlyWhenItRefusedTheSmallestSize) {
  Make();
  EXPECT_EQ(supply_->Create(kGranule * 20), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(supply_->Create(kGranule * 16)));
  EXPECT_FALSE(supply_->refused());
  EXPECT_EQ(Create(13).chunks, ChunkCount(12));
  EXPECT_TRUE(supply_->refused());
  EXPECT_EQ(supply_->ReleaseOne(kGranule * 20), absl::OkStatus());
  Check();
  EXPECT_FALSE(supply_->refused());
  EXPECT_EQ(supply_->spare(kGranule), 12u);
  EXPECT_EQ(supply_->spare(kGranule * 20), 0u);
}

TEST_F(ChunkSupplyTest, AFullDeviceIsRememberedUntilSomethingIsReleasedOrTimePasses) {
  Make();
  EXPECT_FALSE(supply_->refused());
  const ChunkProgress progress = Create(40);
  EXPECT_EQ(progress.chunks, ChunkCount(32));
  EXPECT_TRUE(absl::IsResourceExhausted(progress.status)) << progress.status;
  EXPECT_TRUE(supply_->refused());

  EXPECT_EQ(supply_->Release(kGranule).chunks, ChunkCount(1));
  Check();
  EXPECT_FALSE(supply_->refused());

  EXPECT_FALSE(Create(2).status.ok());
  int growths = 0;
  for (; supply_->refused(); ++growths) supply_->AgeRefusal();
  EXPECT_GT(growths, 1);
  EXPECT_LE(growths, 100);
}

TEST_F(ChunkSupplyTest, AnErrorThatIsNoShortageIsNoRefusal) {
  Make();
  simulator->FailNthCall(EntryPoint::mem_create, 2, abi::kUnknown);
  const ChunkProgress progress = Create(3);
  EXPECT_EQ(progress.chunks, ChunkCount(1));
  EXPECT_TRUE(absl::IsInternal(progress.status)) << progress.status;
  EXPECT_FALSE(supply_->refused());
}

TEST_F(ChunkSupplyTest, WhatTheDriverWillNotTakeBackStaysOnTheBooks) {
  Make();
  Create(3);
  simulator->FailNthCall(EntryPoint::mem_release, 1, abi::kUnknown);
  const ChunkProgress progress = supply_->Release(kGranule * 3);
  EXPECT_EQ(progress.chunks, ChunkCount(2));
  EXPECT_TRUE(absl::IsInternal(progress.status)) << progress.status;
  Check();
  EXPECT_EQ(supply_->pool().chunks(ChunkState::kQuarantined), ChunkCount(1));
  EXPECT_EQ(supply_->spare(), Bytes());
}

TEST_F(ChunkSupplyTest, OnlyReleasesBeforeASynchronisationAreSettledByIt) {
  Make();
  Create(3);
  EXPECT_FALSE(supply_->released_since_sync());
  supply_->Release(kGranule);
  EXPECT_TRUE(supply_->released_since_sync());
  const uint64_t releases = supply_->releases();
  supply_->Release(kGranule);  // by another thread, while the first one synchronises
  supply_->NoteSynchronized(releases);
  EXPECT_TRUE(supply_->released_since_sync());
  supply_->NoteSynchronized(supply_->releases());
  EXPECT_FALSE(supply_->released_since_sync());
  supply_->NoteReleasedByOthers();
  EXPECT_TRUE(supply_->released_since_sync());
}

}  // namespace
}  // namespace expanse

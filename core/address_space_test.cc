#include "core/address_space.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;

// On a device of 64 MiB.
class AddressSpaceTest : public SimulatedDeviceTest {
 protected:
  void Make(int multiple, Bytes chunk_size = kGranule) {
    space_.emplace(*device, chunk_size, budget_);
    EXPECT_EQ(simulator->ledger().reservations, 0u);
    if (multiple > 0) {
      ASSERT_EQ(space_->ReserveFirst(multiple), absl::OkStatus());
    }
    Check();
  }
  Slab Take(Bytes size = KiB(1), Bytes held = Bytes()) {
    const absl::StatusOr<Slab> slab = space_->Take(size, held);
    EXPECT_TRUE(slab.ok()) << slab.status();
    Check();
    return slab.value_or(Slab());
  }
  void Give(const Slab& slab) {
    space_->Give(slab);
    Check();
  }
  void Check() const {
    ASSERT_EQ(space_->CheckInvariants(), absl::OkStatus());
    ASSERT_EQ(budget_.taken(), space_->reserved().count());
    ASSERT_EQ(simulator->ledger().address_bytes, space_->reserved());
  }
  void TearDown() override {
    space_.reset();
    EXPECT_EQ(budget_.taken(), 0u);
    SimulatedDeviceTest::TearDown();
  }

  Budget budget_{GiB(1).count()};
  std::optional<AddressSpace> space_;
};

TEST_F(AddressSpaceTest, TheFirstReservationIsHandedOutFromTheLowestAddress) {
  Make(3);
  EXPECT_EQ(space_->reserved(), MiB(256)) << "192 MiB, rounded up to a power of two";
  EXPECT_EQ(space_->at_hand(), MiB(256));
  const Slab first = Take();
  EXPECT_EQ(first.range.begin, first.reservation->range().begin);
  EXPECT_EQ(Take().range.begin, first.range.end());
  EXPECT_EQ(Calls(EntryPoint::mem_address_reserve), 1u);
}

TEST_F(AddressSpaceTest, SlabsAreOneDeviceMemoryWhileThereIsPlentyAndSmallerAfterwards) {
  Make(8);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Take().range.size, MiB(64)) << i;
  EXPECT_EQ(Take().range.size, MiB(48)) << "a quarter of 192 MiB";
  EXPECT_EQ(Take().range.size, MiB(36));
  EXPECT_EQ(Take().range.size, MiB(26)) << "26.5 MiB in whole chunks";
  EXPECT_EQ(Take().range.size, MiB(20));
  EXPECT_EQ(space_->at_hand(), MiB(62));
  EXPECT_EQ(Take().range.size, kGranule) << "a 256th of the device, rounded up to a chunk";
}

TEST_F(AddressSpaceTest, TheSlabsOfAStreamThatGrowsDouble) {
  Make(1);
  Bytes held;
  for (const uint64_t expected : {2, 2, 4, 8, 16, 32, 64, 64}) {
    const Bytes size = Take(KiB(1), held).range.size;
    EXPECT_EQ(size, MiB(expected));
    held += size;
  }
}

TEST_F(AddressSpaceTest, ASlabHoldsTheRequestHoweverFewAddressesAreLeft) {
  Make(1);
  EXPECT_EQ(Take(MiB(40)).range.size, MiB(40));
  EXPECT_EQ(Take(MiB(11) + Bytes(512)).range.size, MiB(12));
  EXPECT_EQ(Take(MiB(64)).range.size, MiB(64));
  EXPECT_EQ(space_->reserved(), MiB(128));
}

TEST_F(AddressSpaceTest, WhatWasGivenBackMergesAndIsHandedOutAgain) {
  Make(2);
  const Slab one = Take(MiB(40));
  const Slab two = Take(MiB(40));
  const Slab three = Take(MiB(40));
  Give(one);
  Give(three);
  Give(two);
  const Slab all = Take(MiB(64), MiB(64));
  EXPECT_EQ(all.range.begin, one.range.begin);
  EXPECT_EQ(Calls(EntryPoint::mem_address_reserve), 1u);
}

TEST_F(AddressSpaceTest, RangesOfNeighbouringReservationsStayApart) {
  Make(1);
  const Slab one = Take(MiB(64));
  const Slab two = Take(MiB(64));
  ASSERT_NE(one.reservation, two.reservation);
  Give(one);
  Give(two);
  EXPECT_EQ(space_->at_hand(), MiB(128));
  EXPECT_LE(Take(MiB(64)).range.size, MiB(64));
}

TEST_F(AddressSpaceTest, SlabsAreWholeChunksAndTheRestOfAReservationIsLeft) {
  Make(8, MiB(24));
  EXPECT_EQ(space_->reserved(), MiB(512));
  EXPECT_EQ(space_->usable(), MiB(504));
  EXPECT_EQ(Take().range.size, MiB(72));
  EXPECT_EQ(Take(MiB(25)).range.size, MiB(72));
}

TEST_F(AddressSpaceTest, AsksForHalfWhileTheDriverRefuses) {
  simulator->FailNthCall(EntryPoint::mem_address_reserve, 1, abi::kOutOfMemory);
  Make(8);
  EXPECT_EQ(space_->reserved(), MiB(256));
}

TEST_F(AddressSpaceTest, AsksForNoMoreThanTheBudgetHas) {
  budget_.set_limit(MiB(200).count());
  Make(8);
  EXPECT_EQ(space_->reserved(), MiB(128));
  Take(MiB(64));
  Take(MiB(60));
  EXPECT_EQ(Take(MiB(44)).range.size, MiB(44));
  EXPECT_EQ(space_->reserved(), MiB(192)) << "further reservations are of one device memory";
  const absl::StatusOr<Slab> none = space_->Take(MiB(32), Bytes());
  EXPECT_TRUE(absl::IsResourceExhausted(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("8.00 MiB"));
  Check();
  EXPECT_EQ(Take(MiB(8), MiB(64)).range.size, MiB(20)) << "the largest range at hand, though more was wanted";
  EXPECT_EQ(Take(MiB(8)).range.size, MiB(8)) << "the last of the budget";
}

TEST_F(AddressSpaceTest, ARefusedReservationTakesNothingFromTheBudget) {
  Make(0);
  simulator->FailNthCall(EntryPoint::mem_address_reserve, 1, abi::kUnknown);
  const absl::StatusOr<Slab> refused = space_->Take(MiB(1), Bytes());
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("cuMemAddressReserve"));
  Check();
  Take();
}

}  // namespace
}  // namespace expanse

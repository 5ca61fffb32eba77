#include "core/address_space.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;

// On a device of 64 MiB, so that a slab has that size too.
class AddressSpaceTest : public SimulatedDeviceTest {
 protected:
  void Make(Bytes chunk_size = kGranule) { space_.emplace(*device, chunk_size, budget_); }
  Slab Take() {
    const absl::StatusOr<Slab> slab = space_->Take();
    EXPECT_TRUE(slab.ok()) << slab.status();
    Check();
    return slab.value_or(Slab());
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

TEST_F(AddressSpaceTest, TheFirstReservationIsCutIntoSlabsHandedOutFromTheLowest) {
  Make();
  EXPECT_EQ(simulator->ledger().reservations, 0u);
  ASSERT_EQ(space_->ReserveFirst(3), absl::OkStatus());
  Check();
  EXPECT_EQ(space_->reserved(), MiB(256)) << "192 MiB, rounded up to a power of two";
  EXPECT_EQ(space_->slabs_at_hand(), 4u);
  const Slab first = Take();
  EXPECT_EQ(first.range.begin, first.reservation->range().begin);
  for (uint64_t i = 1; i < 4; ++i) EXPECT_EQ(Take().range.begin, first.range.begin + MiB(64) * i);
  EXPECT_EQ(Calls(EntryPoint::mem_address_reserve), 1u);
}

TEST_F(AddressSpaceTest, ASlabThatWasGivenBackIsHandedOutAgain) {
  Make();
  ASSERT_EQ(space_->ReserveFirst(2), absl::OkStatus());
  const Slab first = Take();
  Take();
  space_->Give(first);
  Check();
  EXPECT_EQ(Take().range, first.range);
  EXPECT_EQ(Calls(EntryPoint::mem_address_reserve), 1u);
}

TEST_F(AddressSpaceTest, SlabsAreWholeChunksAndTheRestOfAReservationIsLeft) {
  Make(MiB(24));
  ASSERT_EQ(space_->ReserveFirst(8), absl::OkStatus());
  Check();
  EXPECT_EQ(space_->slab_size(), MiB(72));
  EXPECT_EQ(space_->reserved(), MiB(512));
  EXPECT_EQ(space_->slabs(), MiB(7 * 72));
}

TEST_F(AddressSpaceTest, AsksForHalfWhileTheDriverRefuses) {
  Make();
  simulator->FailNthCall(EntryPoint::mem_address_reserve, 1, abi::kOutOfMemory);
  ASSERT_EQ(space_->ReserveFirst(8), absl::OkStatus());
  Check();
  EXPECT_EQ(space_->reserved(), MiB(256));
}

TEST_F(AddressSpaceTest, AsksForNoMoreThanTheBudgetHas) {
  budget_.set_limit(MiB(200).count());
  Make();
  ASSERT_EQ(space_->ReserveFirst(8), absl::OkStatus());
  Check();
  EXPECT_EQ(space_->reserved(), MiB(128));

  const Slab one = Take();
  const Slab two = Take();
  EXPECT_NE(one.range.begin, two.range.begin);
  EXPECT_EQ(Take().range.size, MiB(64));
  EXPECT_EQ(space_->reserved(), MiB(192)) << "further slabs are reserved one by one";
  const absl::StatusOr<Slab> none = space_->Take();
  EXPECT_TRUE(absl::IsResourceExhausted(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("8.00 MiB"));
  Check();
}

TEST_F(AddressSpaceTest, ARefusedReservationTakesNothingFromTheBudget) {
  Make();
  simulator->FailNthCall(EntryPoint::mem_address_reserve, 1, abi::kUnknown);
  const absl::StatusOr<Slab> refused = space_->Take();
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("cuMemAddressReserve"));
  Check();
  Take();
}

}  // namespace
}  // namespace expanse

#include "vmm/reservation.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ReservationTest : public SimulatedDeviceTest {
 protected:
  [[nodiscard]] const Driver& driver() const { return device->driver(); }
  [[nodiscard]] uint64_t Live() const { return simulator->ledger().reservations; }
};

TEST_F(ReservationTest, OwnsAnAlignedRange) {
  {
    auto reservation = Reservation::Reserve(driver(), MiB(512), MiB(32));
    ASSERT_TRUE(reservation.ok()) << reservation.status();
    EXPECT_EQ(reservation->range().size, MiB(512));
    EXPECT_EQ(reservation->range().begin.value() % MiB(32).count(), 0u);
    EXPECT_EQ(Live(), 1u);
  }
  EXPECT_EQ(Live(), 0u);
}

TEST_F(ReservationTest, MovingPassesOwnershipOn) {
  auto first = Reservation::Reserve(driver(), MiB(4), kGranule);
  auto second = Reservation::Reserve(driver(), MiB(8), kGranule);
  ASSERT_TRUE(first.ok() && second.ok());
  const AddressRange range = first->range();
  *second = std::move(*first);
  EXPECT_EQ(second->range(), range);
  EXPECT_TRUE(first->empty());
  EXPECT_EQ(Live(), 1u);
  Reservation third = std::move(*second);
  EXPECT_TRUE(second->empty());
  EXPECT_EQ(third.range(), range);
  EXPECT_EQ(Live(), 1u);
}

TEST_F(ReservationTest, FreeGivesBackOnce) {
  auto reservation = Reservation::Reserve(driver(), MiB(4), kGranule);
  ASSERT_TRUE(reservation.ok());
  EXPECT_TRUE(reservation->Free().ok());
  EXPECT_TRUE(reservation->empty());
  EXPECT_TRUE(reservation->Free().ok());
  EXPECT_EQ(Calls(EntryPoint::mem_address_free), 1u);
}

TEST_F(ReservationTest, RefusedFreeKeepsOwnership) {
  auto reservation = Reservation::Reserve(driver(), MiB(4), kGranule);
  ASSERT_TRUE(reservation.ok());
  simulator->FailNthCall(EntryPoint::mem_address_free, 1, abi::kInvalidValue);
  EXPECT_TRUE(absl::IsInvalidArgument(reservation->Free()));
  EXPECT_FALSE(reservation->empty());
  EXPECT_TRUE(reservation->Free().ok());
}

TEST_F(ReservationTest, AbandonedRangeStaysReserved) {
  auto reservation = Reservation::Reserve(driver(), MiB(4), kGranule);
  ASSERT_TRUE(reservation.ok());
  const AddressRange range = reservation->range();
  reservation->Abandon();
  EXPECT_TRUE(reservation->empty());
  EXPECT_EQ(Live(), 1u);
  EXPECT_EQ(driver().mem_address_free(range.begin.value(), range.size.count()), abi::kSuccess);
}

TEST_F(ReservationTest, FallbackTakesTheFirstHalvingThatFits) {
  // The address space of the simulated process has 64 GiB.
  auto reservation = Reservation::ReserveWithFallback(driver(), GiB(256), MiB(64), kGranule);
  ASSERT_TRUE(reservation.ok()) << reservation.status();
  EXPECT_LE(reservation->range().size, GiB(64));
  EXPECT_GE(reservation->range().size, GiB(32));
  EXPECT_LE(Calls(EntryPoint::mem_address_reserve), 4u);
}

TEST_F(ReservationTest, FallbackListsWhatWasTried) {
  auto reservation = Reservation::ReserveWithFallback(driver(), GiB(400), GiB(150), kGranule);
  EXPECT_TRUE(absl::IsResourceExhausted(reservation.status())) << reservation.status();
  EXPECT_THAT(std::string(reservation.status().message()),
              AllOf(HasSubstr("400.00 GiB"), HasSubstr("200.00 GiB"), HasSubstr("150.00 GiB"),
                    HasSubstr("cuMemAddressReserve")));
  EXPECT_EQ(Calls(EntryPoint::mem_address_reserve), 3u);  // 400, 200, and the least instead of 100
}

TEST_F(ReservationTest, FallbackRoundsHalvesUpToTheAlignment) {
  simulator->FailNthCall(EntryPoint::mem_address_reserve, 1, abi::kOutOfMemory);
  auto reservation = Reservation::ReserveWithFallback(driver(), kGranule * 7, kGranule, kGranule);
  ASSERT_TRUE(reservation.ok());
  EXPECT_EQ(reservation->range().size, kGranule * 4);
}

TEST_F(ReservationTest, FallbackTakesInvalidValueForAWantOfAddressesToo) {
  simulator->FailNthCall(EntryPoint::mem_address_reserve, 1, abi::kInvalidValue);
  auto reservation = Reservation::ReserveWithFallback(driver(), MiB(64), kGranule, kGranule);
  ASSERT_TRUE(reservation.ok()) << reservation.status();
  EXPECT_EQ(reservation->range().size, MiB(32));
}

TEST_F(ReservationTest, FallbackDoesNotRepeatWhatCannotHelp) {
  simulator->FailNthCall(EntryPoint::mem_address_reserve, 1, abi::kDeinitialized);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Reservation::ReserveWithFallback(driver(), MiB(64), MiB(2), kGranule).status()));
  EXPECT_EQ(Calls(EntryPoint::mem_address_reserve), 1u);
}

// What the driver of the next test, whose only range is aligned to no more than 2 MiB, was given back.
abi::DevicePtr given_back;

TEST(Reservation, MisalignedAnswerIsGivenBackAndAnError) {
  Driver driver;
  driver.mem_address_reserve = [](abi::DevicePtr* address, size_t, size_t, abi::DevicePtr, abi::u64) {
    *address = 0x7f0000200000;
    return abi::kSuccess;
  };
  driver.mem_address_free = [](abi::DevicePtr address, size_t) {
    given_back = address;
    return abi::kSuccess;
  };
  given_back = 0;
  const auto reservation = Reservation::Reserve(driver, MiB(8), MiB(4));
  EXPECT_TRUE(absl::IsInternal(reservation.status())) << reservation.status();
  EXPECT_EQ(given_back, 0x7f0000200000u);
}

TEST(Reservation, EveryFailureIsReportedAndUndone) {
  FailEachCallInTurn(SmallConfig(), [](sim::Simulator& simulator) -> absl::Status {
    absl::Status status = ToStatus(simulator.driver(), simulator.driver().init(0), "cuInit(flags=0)");
    if (!status.ok()) return status;
    auto reservation = Reservation::ReserveWithFallback(simulator.driver(), GiB(256), MiB(64), kGranule);
    if (!reservation.ok()) return reservation.status();
    return reservation->Free();
  });
}

}  // namespace
}  // namespace expanse

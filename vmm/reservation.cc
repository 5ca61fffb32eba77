#include "vmm/reservation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "vmm/driver_call.h"

namespace expanse {
namespace {

// A range that cannot be had is out of memory by documentation; for sizes beyond the address space the driver answers
// with invalid value instead (the oversize cases of ROCm's hip-tests, which were made on NVIDIA hardware).
bool IsWantOfAddresses(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsInvalidArgument(status);
}

}  // namespace

absl::StatusOr<Reservation> Reservation::Reserve(const Driver& driver, Bytes size, Bytes alignment) {
  abi::DevicePtr base = 0;
  const abi::Result result = driver.mem_address_reserve(&base, size.count(), alignment.count(), 0, 0);
  if (result != abi::kSuccess) {
    return CallStatus(driver, result, EntryPoint::mem_address_reserve, "size=", size.count(),
                      ", alignment=", alignment.count());
  }
  Reservation reservation(driver, AddressRange{DeviceAddress(base), size});
  if (base % alignment.count() != 0) {
    return absl::InternalError(absl::StrCat("cuMemAddressReserve(size=", size.count(),
                                            ", alignment=", alignment.count(), ") gave ", ToString(DeviceAddress(base)),
                                            ", which is not so aligned"));
  }
  return reservation;
}

absl::StatusOr<Reservation> Reservation::ReserveWithFallback(const Driver& driver, Bytes wanted, Bytes at_least,
                                                             Bytes alignment) {
  const Bytes smallest = RoundUp(at_least, alignment);
  Bytes size = std::max(RoundUp(wanted, alignment), smallest);
  std::string tried;
  while (true) {
    absl::StatusOr<Reservation> reservation = Reserve(driver, size, alignment);
    if (reservation.ok() || !IsWantOfAddresses(reservation.status())) return reservation;
    absl::StrAppend(&tried, tried.empty() ? "" : ", ", ToString(size));
    if (size <= smallest) {
      return absl::ResourceExhaustedError(absl::StrCat("could not reserve addresses; tried ", tried,
                                                       "; the last attempt: ", reservation.status().message()));
    }
    size = std::max(RoundUp(size / 2, alignment), smallest);
  }
}

Reservation::~Reservation() {
  if (!empty()) (void)Insist([&] { return driver_->mem_address_free(range_.begin.value(), range_.size.count()); });
}

Reservation::Reservation(Reservation&& other) noexcept
    : driver_(other.driver_), range_(std::exchange(other.range_, AddressRange())) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  // The old range, if any, goes with `old`.
  Reservation old(std::move(other));
  std::swap(driver_, old.driver_);
  std::swap(range_, old.range_);
  return *this;
}

absl::Status Reservation::Free() {
  if (empty()) return absl::OkStatus();
  absl::Status status = CallStatus(*driver_, driver_->mem_address_free(range_.begin.value(), range_.size.count()),
                                   EntryPoint::mem_address_free, "address=0x", absl::Hex(range_.begin.value()),
                                   ", size=", range_.size.count());
  if (!status.ok()) return status;
  range_ = AddressRange();
  return absl::OkStatus();
}

void Reservation::Abandon() { range_ = AddressRange(); }

}  // namespace expanse

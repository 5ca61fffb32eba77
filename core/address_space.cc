#include "core/address_space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse {
namespace {

Bytes RoundUpToPowerOfTwo(Bytes size) {
  uint64_t power = 1;
  while (power < size.count()) power <<= 1;
  return Bytes(power);
}

}  // namespace

AddressSpace::AddressSpace(const Device& device, Bytes chunk_size, Budget& budget)
    : device_(device), budget_(budget), slab_size_(RoundUp(device.total_memory(), chunk_size)) {}

AddressSpace::~AddressSpace() {
  reservations_.clear();
  budget_.Give(reserved_.count());
}

absl::Status AddressSpace::ReserveFirst(int multiple) {
  // More than the budget has left is not asked for, so that no multiple is too large to compute with.
  const uint64_t affordable = budget_.left() / device_.total_memory().count();
  Bytes wanted = RoundUpToPowerOfTwo(device_.total_memory() * std::min(static_cast<uint64_t>(multiple), affordable));
  while (wanted.count() > budget_.left() && wanted > slab_size_) wanted = wanted / 2;
  return Reserve(std::max(wanted, slab_size_));
}

absl::StatusOr<Slab> AddressSpace::Take() {
  if (at_hand_.empty()) {
    if (const absl::Status status = Reserve(slab_size_); !status.ok()) return status;
  }
  const Slab slab = at_hand_.back();
  at_hand_.pop_back();
  return slab;
}

absl::Status AddressSpace::Reserve(Bytes wanted) {
  const Bytes granularity = device_.granularity();
  wanted = RoundUp(wanted, granularity);
  if (!budget_.TryTake(wanted.count())) {
    return absl::ResourceExhaustedError(absl::StrCat("the process has ", ToString(Bytes(budget_.left())),
                                                     " of its address budget left; ", ToString(wanted), " are needed"));
  }
  absl::StatusOr<Reservation> reservation =
      Reservation::ReserveWithFallback(device_.driver(), wanted, slab_size_, granularity);
  const Bytes got = reservation.ok() ? reservation->range().size : Bytes();
  budget_.Give((wanted - got).count());
  if (!reservation.ok()) return absl::ResourceExhaustedError(reservation.status().message());
  reserved_ += got;
  slabs_ += RoundDown(got, slab_size_);
  reservations_.push_back(*std::move(reservation));
  const Reservation& added = reservations_.back();
  // The lowest slab is handed out first.
  for (uint64_t i = got / slab_size_; i > 0; --i) {
    at_hand_.push_back(Slab{{added.range().begin + slab_size_ * (i - 1), slab_size_}, &added});
  }
  return absl::OkStatus();
}

absl::Status AddressSpace::CheckInvariants() const {
  Bytes reserved, slabs;
  for (const Reservation& reservation : reservations_) {
    reserved += reservation.range().size;
    slabs += RoundDown(reservation.range().size, slab_size_);
  }
  if (reserved != reserved_ || slabs != slabs_) {
    return absl::InternalError(absl::StrCat("reserved ", ToString(reserved), " with slabs of ", ToString(slabs),
                                            ", but ", ToString(reserved_), " with slabs of ", ToString(slabs_),
                                            " are on the books"));
  }
  for (size_t i = 0; i < at_hand_.size(); ++i) {
    const AddressRange range = at_hand_[i].range;
    const AddressRange around = at_hand_[i].reservation->range();
    if (range.size != slab_size_ || !around.Contains(range) || !IsMultipleOf(range.begin - around.begin, slab_size_)) {
      return absl::InternalError(absl::StrCat("the slab ", ToString(range), " is none of ", ToString(around)));
    }
    for (size_t j = 0; j < i; ++j) {
      if (at_hand_[j].range == range) {
        return absl::InternalError(absl::StrCat("the slab ", ToString(range), " is at hand twice"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace expanse

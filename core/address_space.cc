#include "core/address_space.h"

#include <algorithm>
#include <iterator>
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
    : device_(device),
      budget_(budget),
      chunk_size_(chunk_size),
      largest_slab_(RoundUp(device.total_memory(), chunk_size)) {}

AddressSpace::~AddressSpace() {
  reservations_.clear();
  budget_.Give(reserved_.count());
}

absl::Status AddressSpace::ReserveFirst(int multiple) {
  // More than the budget has left is not asked for, so that no multiple is too large to compute with.
  const uint64_t affordable = budget_.left() / device_.total_memory().count();
  Bytes wanted = RoundUpToPowerOfTwo(device_.total_memory() * std::min(static_cast<uint64_t>(multiple), affordable));
  while (wanted.count() > budget_.left() && wanted > largest_slab_) wanted = wanted / 2;
  return Reserve(std::max(wanted, largest_slab_), largest_slab_);
}

absl::StatusOr<Slab> AddressSpace::Take(Bytes size, Bytes held) {
  const Bytes needed = RoundUp(size, chunk_size_);
  const Bytes preferred = PreferredSize(needed, held);
  if (const std::optional<Slab> slab = TakeAtHand(preferred, preferred)) return *slab;
  const Bytes affordable = RoundDown(Bytes(budget_.left()), device_.granularity());
  const absl::Status reserved = Reserve(std::max(needed, std::min(largest_slab_, affordable)), needed);
  if (const std::optional<Slab> slab = TakeAtHand(needed, preferred)) return *slab;
  return reserved;
}

Bytes AddressSpace::PreferredSize(Bytes needed, Bytes held) const {
  constexpr uint64_t kPartOfAtHand = 4;
  constexpr uint64_t kSmallestPartOfDevice = 256;
  const Bytes plenty =
      at_hand_bytes_ > largest_slab_ ? RoundDown(at_hand_bytes_ / kPartOfAtHand, chunk_size_) : Bytes();
  const Bytes smallest = RoundUp(largest_slab_ / kSmallestPartOfDevice, chunk_size_);
  return std::max(needed, std::min(largest_slab_, std::max({plenty, smallest, held})));
}

absl::StatusOr<Slab> AddressSpace::TakeWithin(Bytes size, Bytes held) {
  const Bytes needed = RoundUp(size, chunk_size_);
  const std::optional<Slab> slab = TakeAtHand(needed, PreferredSize(needed, held));
  if (slab) return *slab;
  return absl::ResourceExhaustedError(
      absl::StrCat(ToString(at_hand_bytes_), " of ", ToString(usable_), " of addresses are left"));
}

std::optional<Slab> AddressSpace::TakeAtHand(Bytes needed, Bytes preferred) {
  auto largest = at_hand_.begin();
  for (auto it = at_hand_.begin(); it != at_hand_.end(); ++it) {
    if (it->second.range.size >= preferred) return CutFront(it, preferred);
    if (it->second.range.size > largest->second.range.size) largest = it;
  }
  if (largest == at_hand_.end() || largest->second.range.size < needed) return std::nullopt;
  return CutFront(largest, largest->second.range.size);
}

Slab AddressSpace::CutFront(Ranges::iterator range, Bytes size) {
  const Slab whole = range->second;
  at_hand_.erase(range);
  at_hand_bytes_ -= size;
  if (size < whole.range.size) {
    const AddressRange rest{whole.range.begin + size, whole.range.size - size};
    at_hand_.emplace(rest.begin, Slab{rest, whole.reservation});
  }
  return Slab{{whole.range.begin, size}, whole.reservation};
}

void AddressSpace::Give(const Slab& slab) {
  at_hand_bytes_ += slab.range.size;
  AddressRange merged = slab.range;
  auto next = at_hand_.lower_bound(merged.begin);
  if (next != at_hand_.end() && next->second.reservation == slab.reservation && next->first == merged.end()) {
    merged.size += next->second.range.size;
    next = at_hand_.erase(next);
  }
  if (next != at_hand_.begin()) {
    Slab& before = std::prev(next)->second;
    if (before.reservation == slab.reservation && before.range.end() == merged.begin) {
      before.range.size += merged.size;
      return;
    }
  }
  at_hand_.emplace(merged.begin, Slab{merged, slab.reservation});
}

absl::Status AddressSpace::Reserve(Bytes wanted, Bytes at_least) {
  const Bytes granularity = device_.granularity();
  wanted = RoundUp(wanted, granularity);
  if (!budget_.TryTake(wanted.count())) {
    return absl::ResourceExhaustedError(absl::StrCat("the process has ", ToString(Bytes(budget_.left())),
                                                     " of its address budget left; ", ToString(wanted), " are needed"));
  }
  absl::StatusOr<Reservation> reservation =
      Reservation::ReserveWithFallback(device_.driver(), wanted, at_least, granularity);
  const Bytes got = reservation.ok() ? reservation->range().size : Bytes();
  budget_.Give((wanted - got).count());
  if (!reservation.ok()) return absl::ResourceExhaustedError(reservation.status().message());
  reserved_ += got;
  reservations_.push_back(*std::move(reservation));
  const Bytes usable = RoundDown(got, chunk_size_);
  usable_ += usable;
  Give(Slab{{reservations_.back().range().begin, usable}, &reservations_.back()});
  return absl::OkStatus();
}

absl::Status AddressSpace::CheckInvariants() const {
  Bytes reserved, usable, at_hand;
  for (const Reservation& reservation : reservations_) {
    reserved += reservation.range().size;
    usable += RoundDown(reservation.range().size, chunk_size_);
  }
  if (reserved != reserved_ || usable != usable_) {
    return absl::InternalError(absl::StrCat("reserved ", ToString(reserved), ", usable ", ToString(usable), ", but ",
                                            ToString(reserved_), " and ", ToString(usable_), " are on the books"));
  }
  const Slab* before = nullptr;
  for (const auto& [begin, slab] : at_hand_) {
    const AddressRange around = slab.reservation->range();
    if (begin != slab.range.begin || slab.range.size.is_zero() || !around.Contains(slab.range) ||
        !IsMultipleOf(begin - around.begin, chunk_size_) || !IsMultipleOf(slab.range.size, chunk_size_)) {
      return absl::InternalError(
          absl::StrCat(ToString(slab.range), ", which is at hand, are no whole chunks of ", ToString(around)));
    }
    if (before != nullptr &&
        (before->range.end() > begin || (before->range.end() == begin && before->reservation == slab.reservation))) {
      return absl::InternalError(
          absl::StrCat(ToString(before->range), " and ", ToString(slab.range), " are at hand and not one range"));
    }
    before = &slab;
    at_hand += slab.range.size;
  }
  if (at_hand != at_hand_bytes_) {
    return absl::InternalError(absl::StrCat("ranges of ", ToString(at_hand), " are at hand, but ",
                                            ToString(at_hand_bytes_), " are on the books"));
  }
  return absl::OkStatus();
}

}  // namespace expanse

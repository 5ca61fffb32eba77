#include "vmm/sim/address_space.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "vmm/sim/host_pages.h"

namespace expanse::sim {
namespace {

DeviceAddress AlignUp(DeviceAddress address, Bytes alignment) {
  return DeviceAddress(RoundUp(Bytes(address.value()), alignment).count());
}

}  // namespace

AddressSpace::~AddressSpace() {
  if (mode_ != MemoryMode::kReal) return;
  for (const auto& [begin, taken] : taken_) ReleasePages({DeviceAddress(begin), taken.size});
}

bool AddressSpace::IsFree(AddressRange range) const {
  auto it = taken_.lower_bound(range.end().value());
  if (it == taken_.begin()) return true;
  it = std::prev(it);
  return it->first + it->second.size.count() <= range.begin.value();
}

std::optional<DeviceAddress> AddressSpace::FirstFit(DeviceAddress from, DeviceAddress to, Bytes size,
                                                    Bytes alignment) const {
  DeviceAddress at = AlignUp(from, alignment);
  auto it = taken_.upper_bound(at.value());
  if (it != taken_.begin()) {
    const auto before = std::prev(it);
    at = std::max(at, AlignUp(DeviceAddress(before->first) + before->second.size, alignment));
  }
  for (; at < to; ++it) {
    if (at >= invented_end() || invented_end() - at < size) return std::nullopt;
    if (it == taken_.end() || it->first >= (at + size).value()) return at;
    at = std::max(at, AlignUp(DeviceAddress(it->first) + it->second.size, alignment));
  }
  return std::nullopt;
}

std::optional<DeviceAddress> AddressSpace::Invent(Bytes size, Bytes alignment) {
  std::optional<DeviceAddress> at = FirstFit(cursor_, invented_end(), size, alignment);
  if (!at) at = FirstFit(kFirstInvented, cursor_, size, alignment);
  if (at) cursor_ = *at + size;
  return at;
}

std::optional<DeviceAddress> AddressSpace::Take(Bytes size, Bytes alignment, DeviceAddress hint, Use use) {
  if (size > limit_ - taken_bytes_ || alignment > limit_) return std::nullopt;
  std::optional<DeviceAddress> at;
  const bool use_hint = !hint.is_null() && IsMultipleOf(Bytes(hint.value()), alignment) &&
                        hint.value() + size.count() > hint.value() && IsFree({hint, size});
  if (mode_ == MemoryMode::kReal) {
    if (use_hint) at = ReservePages(size, alignment, hint);
    if (!at) at = ReservePages(size, alignment);
  } else {
    if (use_hint && hint >= kFirstInvented && hint + size <= invented_end()) at = hint;
    if (!at) at = Invent(size, alignment);
  }
  if (!at) return std::nullopt;
  taken_.emplace(at->value(), Taken{size, use});
  taken_bytes_ += size;
  if (use == Use::kReservation) {
    ++reservations_;
    reserved_ += size;
  }
  return at;
}

void AddressSpace::GiveBack(DeviceAddress begin) {
  const auto it = taken_.find(begin.value());
  const Taken taken = it->second;
  taken_.erase(it);
  taken_bytes_ -= taken.size;
  if (taken.use == Use::kReservation) {
    --reservations_;
    reserved_ -= taken.size;
  }
  if (mode_ == MemoryMode::kReal) ReleasePages({begin, taken.size});
}

std::optional<AddressRange> AddressSpace::FindReservation(DeviceAddress address) const {
  auto it = taken_.upper_bound(address.value());
  if (it == taken_.begin()) return std::nullopt;
  it = std::prev(it);
  const AddressRange range{DeviceAddress(it->first), it->second.size};
  if (it->second.use != Use::kReservation || !range.Contains(address)) return std::nullopt;
  return range;
}

absl::Status AddressSpace::CheckInvariants() const {
  uint64_t reservations = 0;
  Bytes reserved, all;
  uint64_t last_end = 0;
  for (const auto& [begin, taken] : taken_) {
    if (begin < last_end || taken.size.is_zero() || !IsMultipleOf(taken.size, kHostPage)) {
      return absl::InternalError(
          absl::StrCat("address space: bad range ", ToString(AddressRange{DeviceAddress(begin), taken.size})));
    }
    last_end = begin + taken.size.count();
    all += taken.size;
    if (taken.use == Use::kReservation) {
      ++reservations;
      reserved += taken.size;
    }
  }
  if (reservations != reservations_ || reserved != reserved_ || all != taken_bytes_ || all > limit_) {
    return absl::InternalError(absl::StrCat("address space: ", reservations, " reservations of ", ToString(reserved),
                                            ", counted as ", reservations_, " of ", ToString(reserved_), "; ",
                                            ToString(all), " in all of ", ToString(limit_)));
  }
  return absl::OkStatus();
}

}  // namespace expanse::sim

#include "core/layout.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace expanse {

Layout::Layout(AddressRange range) : range_(range) { Add(range); }

std::optional<DeviceAddress> Layout::Place(Bytes size) const {
  const auto it = by_size_.lower_bound({size, DeviceAddress()});
  if (it == by_size_.end()) return std::nullopt;
  return it->second;
}

void Layout::Occupy(AddressRange part) {
  const auto it = std::prev(gaps_.upper_bound(part.begin));
  const AddressRange gap{it->first, it->second};
  Remove(gap);
  if (gap.begin < part.begin) Add({gap.begin, part.begin - gap.begin});
  if (part.end() < gap.end()) Add({part.end(), gap.end() - part.end()});
}

void Layout::Vacate(AddressRange part) {
  AddressRange gap = part;
  const auto next = gaps_.lower_bound(part.begin);
  if (next != gaps_.begin()) {
    const AddressRange before{std::prev(next)->first, std::prev(next)->second};
    if (before.end() == gap.begin) gap = {before.begin, before.size + gap.size};
  }
  if (next != gaps_.end() && next->first == gap.end()) {
    const AddressRange after{next->first, next->second};
    gap.size += after.size;
    Remove(after);
  }
  if (gap.begin != part.begin) Remove({gap.begin, part.begin - gap.begin});
  Add(gap);
}

void Layout::Add(AddressRange gap) {
  gaps_.emplace(gap.begin, gap.size);
  by_size_.emplace(gap.size, gap.begin);
}

void Layout::Remove(AddressRange gap) {
  gaps_.erase(gap.begin);
  by_size_.erase({gap.size, gap.begin});
}

absl::Status Layout::CheckInvariants() const {
  if (gaps_.size() != by_size_.size()) {
    return absl::InternalError(
        absl::StrCat("layout: ", gaps_.size(), " gaps by address, ", by_size_.size(), " by size"));
  }
  DeviceAddress last = range_.begin;
  bool first = true;
  for (const auto& [begin, size] : gaps_) {
    const AddressRange gap{begin, size};
    const bool touches = !first && begin == last;
    if (size.is_zero() || begin < last || touches || !range_.Contains(gap) || !by_size_.contains({size, begin})) {
      return absl::InternalError(absl::StrCat("layout: the gap ", ToString(gap), " is misplaced or not indexed"));
    }
    last = gap.end();
    first = false;
  }
  return absl::OkStatus();
}

}  // namespace expanse

#include "vmm/sim/mapping_table.h"

#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace expanse::sim {
namespace {

// The first entry that ends above `begin`.
template <typename MapT>
auto FirstEndingAbove(MapT& map, DeviceAddress begin) {
  auto it = map.upper_bound(begin.value());
  if (it == map.begin()) return it;
  auto before = std::prev(it);
  return before->second.range.end() > begin ? before : it;
}

}  // namespace

MappingTable::Map::const_iterator MappingTable::FirstIn(AddressRange range) const {
  return FirstEndingAbove(by_begin_, range.begin);
}
MappingTable::Map::iterator MappingTable::FirstIn(AddressRange range) {
  return FirstEndingAbove(by_begin_, range.begin);
}

void MappingTable::Add(AddressRange range, Allocation& allocation, AccessMask access) {
  by_begin_.emplace(range.begin.value(), Mapping{range, &allocation, access});
  ++allocation.mappings;
  classic_ += allocation.classic ? 1 : 0;
}

Mapping MappingTable::Erase(DeviceAddress begin) {
  const auto it = by_begin_.find(begin.value());
  const Mapping mapping = it->second;
  by_begin_.erase(it);
  --mapping.allocation->mappings;
  classic_ -= mapping.allocation->classic ? 1 : 0;
  return mapping;
}

const Mapping* MappingTable::Find(DeviceAddress address) const {
  const auto it = FirstIn({address, Bytes(1)});
  return it != by_begin_.end() && it->second.range.Contains(address) ? &it->second : nullptr;
}

bool MappingTable::AnyIn(AddressRange range) const {
  const auto it = FirstIn(range);
  return it != by_begin_.end() && it->first < range.end().value();
}

MappingTable::Tiling MappingTable::TilingOf(AddressRange range) const {
  DeviceAddress covered = range.begin;  // There are no holes below.
  bool holes = false;
  for (auto it = FirstIn(range); it != by_begin_.end() && it->first < range.end().value(); ++it) {
    const AddressRange& mapping = it->second.range;
    if (!range.Contains(mapping)) return Tiling::kPartial;
    holes = holes || mapping.begin > covered;
    covered = mapping.end();
  }
  return holes || covered < range.end() ? Tiling::kHoles : Tiling::kExact;
}

bool MappingTable::Covers(AddressRange range) const {
  DeviceAddress covered = range.begin;
  for (auto it = FirstIn(range); it != by_begin_.end() && it->first < range.end().value(); ++it) {
    if (it->second.range.begin > covered) return false;
    covered = it->second.range.end();
  }
  return covered >= range.end();
}

absl::Status MappingTable::CheckInvariants() const {
  absl::flat_hash_map<const Allocation*, uint64_t> counts;
  uint64_t classic = 0;
  DeviceAddress last_end;
  for (const auto& [begin, mapping] : by_begin_) {
    if (begin != mapping.range.begin.value() || mapping.range.begin < last_end || mapping.range.size.is_zero() ||
        mapping.range.size > RoundUp(mapping.allocation->size, KiB(4))) {
      return absl::InternalError(absl::StrCat("mapping table: bad mapping ", ToString(mapping.range)));
    }
    last_end = mapping.range.end();
    ++counts[mapping.allocation];
    classic += mapping.allocation->classic ? 1 : 0;
  }
  for (const auto& [allocation, count] : counts) {
    if (allocation->mappings != count) {
      return absl::InternalError(absl::StrCat("allocation ", AllocationTable::HandleOf(*allocation), ": ", count,
                                              " mappings counted as ", allocation->mappings));
    }
  }
  if (classic == classic_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("mapping table: ", classic, " classic mappings counted as ", classic_));
}

}  // namespace expanse::sim

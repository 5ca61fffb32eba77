// Where blocks lie in a stretch of addresses, whatever is behind them.

#ifndef EXPANSE_CORE_LAYOUT_H_
#define EXPANSE_CORE_LAYOUT_H_

#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse {

// Divides a range into occupied parts and gaps by best fit. It knows nothing of memory, streams and time: what it
// answers depends on nothing but the calls before.
//
// Invariants: gaps are disjoint, not empty, and no two touch; both indices have the same ones.
// Guarded by the allocator's lock.
class Layout {
 public:
  // One gap.
  explicit Layout(AddressRange range);

  // The begin of the smallest gap of at least `size`, of several the lowest; none if there is none. O(log gaps).
  [[nodiscard]] std::optional<DeviceAddress> Place(Bytes size) const;
  // Occupies a part of one gap. O(log gaps).
  void Occupy(AddressRange part);
  // Makes an occupied part a gap, which merges with its neighbours. O(log gaps).
  void Vacate(AddressRange part);

  [[nodiscard]] AddressRange range() const { return range_; }
  [[nodiscard]] const absl::btree_map<DeviceAddress, Bytes>& gaps() const { return gaps_; }
  // OK, or INTERNAL naming the first inconsistency. O(gaps).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  void Add(AddressRange gap);
  void Remove(AddressRange gap);

  const AddressRange range_;
  absl::btree_map<DeviceAddress, Bytes> gaps_;
  absl::btree_set<std::pair<Bytes, DeviceAddress>> by_size_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_LAYOUT_H_

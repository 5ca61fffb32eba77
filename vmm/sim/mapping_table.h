// The table of mappings: which addresses show which memory, and which devices may use it there.

#ifndef EXPANSE_VMM_SIM_MAPPING_TABLE_H_
#define EXPANSE_VMM_SIM_MAPPING_TABLE_H_

#include <cstdint>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "vmm/abi.h"
#include "vmm/sim/allocation_table.h"
#include "vmm/units.h"

namespace expanse::sim {

inline constexpr int kMaxDevices = 64;

// Who may do what with the bytes of a mapping: one bit a device. A device that may write may read.
class AccessMask {
 public:
  void Set(DeviceOrdinal device, int flags) {
    const uint64_t bit = uint64_t{1} << device.value();
    read_ = (flags & abi::kAccessRead) != 0 ? read_ | bit : read_ & ~bit;
    write_ = flags == abi::kAccessReadWrite ? write_ | bit : write_ & ~bit;
  }
  // An abi::AccessFlags value.
  [[nodiscard]] int Get(DeviceOrdinal device) const {
    const uint64_t bit = uint64_t{1} << device.value();
    return (write_ & bit) != 0 ? abi::kAccessReadWrite : (read_ & bit) != 0 ? abi::kAccessRead : abi::kAccessNone;
  }
  [[nodiscard]] bool any_reads() const { return read_ != 0; }
  [[nodiscard]] bool any_writes() const { return write_ != 0; }

 private:
  uint64_t read_ = 0;
  uint64_t write_ = 0;
};

// The whole of [range.begin, range.end()) shows the allocation's bytes from its start. Made by one cuMemMap, or by one
// cuMemAlloc.
struct Mapping {
  AddressRange range;
  Allocation* allocation = nullptr;
  AccessMask access;
};

// Mappings by address.
//
// Invariants: mappings are disjoint; none is larger than its allocation; an allocation's `mappings` counts its mappings
// here. Pointers to mappings are valid until the next Add or Erase. Not synchronised.
class MappingTable {
 public:
  // How mappings lie in a range.
  enum class Tiling {
    kExact,    // whole mappings, side by side, and nothing else
    kHoles,    // whole mappings with unmapped bytes between or around them, or nothing at all
    kPartial,  // some mapping is covered in part only
  };

  // The range must be free of mappings. O(log n).
  void Add(AddressRange range, Allocation& allocation, AccessMask access);
  // Removes the mapping that starts there and returns what it was.
  Mapping Erase(DeviceAddress begin);

  // The mapping that holds the address; null if there is none. O(log n).
  [[nodiscard]] const Mapping* Find(DeviceAddress address) const;
  [[nodiscard]] bool AnyIn(AddressRange range) const;
  // O(log n + mappings in the range).
  [[nodiscard]] Tiling TilingOf(AddressRange range) const;
  // Whether every byte of the range is mapped.
  [[nodiscard]] bool Covers(AddressRange range) const;
  // Calls f(const Mapping&) for all.
  template <typename F>
  void ForEach(F&& f) const {
    for (const auto& [begin, mapping] : by_begin_) f(mapping);
  }
  // Calls f(Mapping&) for those that lie in the range, wholly or in part, by address.
  template <typename F>
  void ForEachIn(AddressRange range, F&& f) {
    for (auto it = FirstIn(range); it != by_begin_.end() && it->first < range.end().value(); ++it) f(it->second);
  }

  // Without the classic ones.
  [[nodiscard]] uint64_t count() const { return by_begin_.size() - classic_; }
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  using Map = absl::btree_map<uint64_t, Mapping>;
  [[nodiscard]] Map::const_iterator FirstIn(AddressRange range) const;
  [[nodiscard]] Map::iterator FirstIn(AddressRange range);

  Map by_begin_;
  uint64_t classic_ = 0;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_MAPPING_TABLE_H_

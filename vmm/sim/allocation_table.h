// The table of physical allocations and of the handles that name them.

#ifndef EXPANSE_VMM_SIM_ALLOCATION_TABLE_H_
#define EXPANSE_VMM_SIM_ALLOCATION_TABLE_H_

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "vmm/abi.h"
#include "vmm/sim/race_detector.h"
#include "vmm/units.h"

namespace expanse::sim {

// One piece of physical memory. Lives while a handle reference or a mapping keeps it.
struct Allocation {
  AllocationId id{};
  DeviceOrdinal device;
  Bytes size;       // committed
  uint64_t offset;  // in the device's file
  abi::AllocationProp prop{};
  bool classic = false;     // from cuMemAlloc: no handle ever names it
  uint64_t references = 0;  // of the handle; at 0 the handle is dead, and revived only by a retain through a mapping
  uint64_t mappings = 0;

  [[nodiscard]] bool dead() const { return references == 0 && mappings == 0; }
};

// All allocations by number. A handle is its allocation's number, so the same memory always has the same handle, and
// the number, counting up, is never used for other memory.
//
// Invariant: handle_references() is the sum of all references, classic_count() the number of classic allocations, and
// those have no references. Pointers to allocations stay valid until Erase. Not synchronised.
class AllocationTable {
 public:
  // Adds an allocation with one reference, or, if classic, none.
  Allocation* Add(DeviceOrdinal device, Bytes size, uint64_t offset, const abi::AllocationProp& prop, bool classic);
  // The allocation that a live handle names; null for any other value. O(1).
  [[nodiscard]] Allocation* Find(abi::MemHandle handle) const;
  void AddReference(Allocation& allocation);
  void DropReference(Allocation& allocation);
  // Forgets an allocation that is dead.
  void Erase(const Allocation& allocation);

  // Handles of memory that exists, dead ones that a mapping keeps included.
  [[nodiscard]] uint64_t handle_count() const { return allocations_.size() - classic_count_; }
  [[nodiscard]] uint64_t classic_count() const { return classic_count_; }
  [[nodiscard]] uint64_t handle_references() const { return references_; }
  template <typename F>
  void ForEach(F&& f) const {
    for (const auto& [number, allocation] : allocations_) f(*allocation);
  }
  [[nodiscard]] absl::Status CheckInvariants() const;

  static abi::MemHandle HandleOf(const Allocation& allocation) { return static_cast<abi::MemHandle>(allocation.id); }

 private:
  absl::flat_hash_map<abi::MemHandle, std::unique_ptr<Allocation>> allocations_;
  uint64_t next_number_ = 1;  // 0 is no handle.
  uint64_t classic_count_ = 0;
  uint64_t references_ = 0;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_ALLOCATION_TABLE_H_

// Everything a simulated driver remembers, and the steps that several entry points share.

#ifndef EXPANSE_VMM_SIM_DRIVER_STATE_H_
#define EXPANSE_VMM_SIM_DRIVER_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "vmm/driver.h"
#include "vmm/sim/address_space.h"
#include "vmm/sim/allocation_table.h"
#include "vmm/sim/contexts.h"
#include "vmm/sim/fault_injector.h"
#include "vmm/sim/mapping_table.h"
#include "vmm/sim/physical_memory.h"
#include "vmm/sim/simulator.h"
#include "vmm/sim/timeline.h"

namespace expanse::sim {

// The tables, with the operations that keep them in step. Entry points check their arguments, then call these.
// Not synchronised: the simulator's mutex guards all of it.
class DriverState {
 public:
  DriverState(const Config& config, std::vector<PhysicalMemory> memories, uint64_t number);

  const Config config;
  const uint64_t number;    // of this simulator in the process, for ThreadState
  const Bytes granularity;  // the largest of any device, to which reservations are aligned
  bool initialized = false;

  AddressSpace addresses;
  std::vector<PhysicalMemory> memories;  // by device
  AllocationTable allocations;
  MappingTable mappings;
  Contexts contexts;
  Timeline timeline;
  FaultInjector faults;
  Counters counters;

  // --- Devices and contexts ---------------------------------------------------------------------------------------
  [[nodiscard]] bool IsDevice(int ordinal) const { return ordinal >= 0 && ordinal < device_count(); }
  [[nodiscard]] int device_count() const { return static_cast<int>(config.devices.size()); }
  [[nodiscard]] PhysicalMemory& memory(DeviceOrdinal device) { return memories[static_cast<size_t>(device.value())]; }
  [[nodiscard]] const PhysicalMemory& memory(DeviceOrdinal device) const {
    return memories[static_cast<size_t>(device.value())];
  }
  [[nodiscard]] const DeviceConfig& device(DeviceOrdinal device) const {
    return config.devices[static_cast<size_t>(device.value())];
  }
  [[nodiscard]] ThreadState& thread() const { return ThreadState::Of(number); }
  // kSuccess and the device of the current context; 201 if there is none, 709 if it was destroyed.
  [[nodiscard]] abi::Result CurrentDevice(DeviceOrdinal* device) const;
  // The last reference to the context goes: its work is waited for, its streams, events and classic memory go with it.
  void DestroyContext(DeviceOrdinal device);

  // --- A call -----------------------------------------------------------------------------------------------------
  // Whatever must come before the arguments of a call are looked at; kSuccess if it may go on.
  [[nodiscard]] abi::Result BeforeArguments(EntryPoint entry_point);
  // Tells what the call touches, for its cost.
  void Touches(uint64_t handles, Bytes bytes) {
    touched_handles_ = handles;
    touched_bytes_ = bytes;
  }
  // Books what the call costs, and moves the clock by it if the configuration says so.
  void Charge(EntryPoint entry_point);

  // --- Memory -----------------------------------------------------------------------------------------------------
  // New physical memory; null if the device, or the host, has none left.
  [[nodiscard]] Allocation* CreateAllocation(DeviceOrdinal device, Bytes size, const abi::AllocationProp& prop,
                                             bool classic);
  void FreeIfUnused(Allocation& allocation);
  // A classic allocation; false if there is no memory or no room for it.
  [[nodiscard]] bool CreateClassic(DeviceOrdinal device, Bytes size, DeviceAddress* address);
  // Frees the classic allocation that starts there.
  void FreeClassic(DeviceAddress begin);
  // Maps the allocation's head at a free range of a reservation. False if the host cannot.
  [[nodiscard]] bool Map(AddressRange range, Allocation& allocation);
  // Unmaps whole mappings of `range`, and finds out whether queued work still uses them. False if the host cannot.
  [[nodiscard]] bool Unmap(AddressRange range);
  // Sets the access of each device named on all mappings that the range touches. False if the host cannot.
  [[nodiscard]] bool SetAccess(AddressRange range, absl::Span<const abi::AccessDesc> descs);
  // Whether the range lies in reservations that adjoin each other: in exactly one, unless `several` is allowed.
  [[nodiscard]] bool IsReserved(AddressRange range, bool several) const;

  // --- Faults -----------------------------------------------------------------------------------------------------
  void Report(Hazard::Kind kind, std::string description);
  // The device faults when the clock reaches `when`.
  void FaultAt(VirtualTime when, DeviceOrdinal device);
  // Makes faults sticky whose time has come.
  void RaiseDueFaults();
  // After a wait: what was freed is available again, and faults of the work waited for show.
  [[nodiscard]] abi::Result AfterWait(DeviceOrdinal device);

  void ResetStickyError();

  [[nodiscard]] const std::vector<Hazard>& hazards() const { return hazards_; }
  [[nodiscard]] uint64_t hazard_count() const { return hazard_count_; }
  void ClearHazards();

  [[nodiscard]] Ledger MakeLedger() const;
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  static constexpr size_t kHazardsKept = 1000;

  struct DueFault {
    VirtualTime when;
    DeviceOrdinal device;
  };

  [[nodiscard]] bool real() const { return config.memory == MemoryMode::kReal; }
  // Reports work that still uses a range about to be unmapped.
  void NoticeUnmap(AddressRange range);
  // Gives the pages of the mappings in the range the protections that follow from `access`, one for each.
  [[nodiscard]] bool Protect(AddressRange range, absl::Span<const AccessMask> access);
  // What the host may do with pages that devices may use so.
  [[nodiscard]] int HostProtection(const AccessMask& access) const;

  std::vector<DueFault> due_faults_;
  std::vector<Hazard> hazards_;  // The first kHazardsKept.
  uint64_t hazard_count_ = 0;
  uint64_t touched_handles_ = 0;
  Bytes touched_bytes_;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_DRIVER_STATE_H_

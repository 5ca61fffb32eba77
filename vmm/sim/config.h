// What a simulated driver is made of: its devices, its limits, the answers to questions that NVIDIA's documentation
// leaves open, and what calls cost.

#ifndef EXPANSE_VMM_SIM_CONFIG_H_
#define EXPANSE_VMM_SIM_CONFIG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vmm/abi.h"
#include "vmm/sim/cost_model.h"
#include "vmm/units.h"

namespace expanse::sim {

struct DeviceConfig {
  std::string name = "Expanse simulated device";
  Bytes total_memory = GiB(80);
  Bytes granularity = MiB(2);  // minimum and recommended
  // Overrides of the default attribute values, by CUdevice_attribute number.
  std::map<int, int> attributes;
};

// How memory is represented on the host.
enum class MemoryMode {
  // Reservations are address ranges of this process and chunks are pages of a sparse file, so device addresses can be
  // dereferenced and contents survive moves.
  kReal,
  // Only the books are kept: devices of any size in megabytes of host memory. Device addresses must not be
  // dereferenced; copies and fills check their arguments and move nothing.
  kAccounting,
};

// Points on which public sources are silent or contradict each other, each as a switch with the likelier answer as its
// default. The allocator must work with each of them either way. docs/simulator.md explains each one.
struct Quirks {
  abi::Result offset_map_error = abi::kInvalidValue;    // cuMemMap with a non-zero offset: 1 or 801
  abi::Result oversize_map_error = abi::kNotSupported;  // cuMemMap of more than the handle holds: 801 or 1
  bool unmap_hole_is_partial = false;      // cuMemUnmap over a hole: unmaps what is there, and still returns an error
  bool unmap_across_reservations = false;  // cuMemUnmap over two adjacent reservations succeeds
  bool set_access_subrange = false;        // cuMemSetAccess on part of a mapping succeeds (for the whole mapping)
  bool address_free_live = false;          // cuMemAddressFree over live mappings succeeds and unmaps them
  bool vmm_needs_context = false;          // the virtual memory calls return 201 without a retained context
  abi::Result peer_error = abi::kInvalidValue;  // cuMemSetAccess for a device without a peer route: 1 or 217
  bool honour_address_hints = true;             // cuMemAddressReserve returns a free, aligned hint
  bool context_free_calls_see_sticky = true;    // calls that need no context return a sticky error too
  bool release_lag = false;                     // freed bytes show in cuMemGetInfo and to cuMemCreate only after a sync
  bool alloc_zero_succeeds = false;             // cuMemAllocAsync of 0 bytes: success and null, or 1
};

struct Config {
  std::vector<DeviceConfig> devices = {DeviceConfig{}};
  MemoryMode memory = MemoryMode::kReal;
  Quirks quirks;
  CostModel costs = CostModel::Default();
  // Whether the modelled cost of a call moves the virtual clock on which queued work completes. Costs are summed
  // either way.
  bool calls_advance_clock = true;
  // Fill fresh physical memory with 0xCD in kReal mode: contents of new memory are undefined, and zero hides bugs.
  bool poison = true;
  // In kReal mode, device addresses cannot be dereferenced by the host at all, as on a real device.
  bool strict_host_fault = false;
  Bytes address_space = TiB(128);  // what all reservations together may take
  uint64_t max_handles = 524288;   // live handles per process
  uint64_t max_mappings = 520000;  // per context
  int driver_version = 13000;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_CONFIG_H_

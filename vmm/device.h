// One GPU, opened for virtual memory management.

#ifndef EXPANSE_VMM_DEVICE_H_
#define EXPANSE_VMM_DEVICE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/chunk.h"
#include "vmm/counting_driver.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse {

// What the device says it can do. A handle type or property that is claimed here may still be refused (fabric handles
// need a channel that the attribute does not know about): Device::ProbeKind finds out.
struct DeviceCapabilities {
  bool posix_fd_handles = false;
  bool fabric_handles = false;
  bool generic_compression = false;
  bool rdma = false;          // GPUDirect RDMA with virtual memory management
  bool memory_pools = false;  // cuMemAllocAsync
  bool multicast = false;
  bool integrated = false;  // shares the host's memory
};

struct MemoryInfo {
  Bytes free;  // what the driver believes it could give; other processes may take it first
  Bytes total;
};

// Holds the device's primary context from Open until destruction, so that mappings made meanwhile stay accessible.
// Everything that maps memory of the device or records its events must be destroyed first.
//
// Thread-safe: immutable after Open, but for the counts of calls.
class Device {
 public:
  // Initialises the driver, retains the primary context and proves, by creating, mapping, opening and unmapping one
  // granule, that virtual memory management works. Whatever was done is undone on every path.
  //
  // Errors: UNIMPLEMENTED where the device says it has no virtual memory management; otherwise what the driver said.
  // Blocks while the driver creates the context (up to seconds).
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Device>> Open(const Driver& driver, DeviceOrdinal ordinal);
  // Releases the context, insisting once. What the driver answers then is ignored: it may be gone already when a
  // process ends.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The table by which whoever uses this device calls the driver, so that calls are counted by device.
  [[nodiscard]] const Driver& driver() const { return driver_.driver(); }
  // Calls made through driver() since Open began. Thread-safe.
  [[nodiscard]] DriverCallCounts calls() const { return driver_.counts(); }
  [[nodiscard]] DeviceOrdinal ordinal() const { return ordinal_; }
  [[nodiscard]] abi::Context context() const { return context_; }
  [[nodiscard]] Bytes total_memory() const { return total_memory_; }
  // Sizes and addresses of physical memory are multiples of this: the larger of what the driver requires and
  // recommends.
  [[nodiscard]] Bytes granularity() const { return granularity_; }
  [[nodiscard]] const DeviceCapabilities& capabilities() const { return capabilities_; }

  // What the driver says is free. Three driver calls: the context is made current for the question.
  [[nodiscard]] absl::StatusOr<MemoryInfo> GetMemoryInfo() const;

  // Whether physical memory of this kind can be had: creates one granule of it and releases it. RESOURCE_EXHAUSTED is
  // no answer; any other error says that the kind is refused.
  [[nodiscard]] absl::Status ProbeKind(const ChunkKind& kind) const;

 private:
  Device(const Driver& driver, DeviceOrdinal ordinal) : driver_(driver), ordinal_(ordinal) {}
  absl::Status Initialise();
  absl::Status ReadProperties();
  absl::Status ProbeVirtualMemory() const;
  // Whether less is free than the least that can be created.
  [[nodiscard]] bool IsFull() const;

  CountingDriver driver_;
  DeviceOrdinal ordinal_;
  abi::Device device_ = 0;
  abi::Context context_ = nullptr;  // null until retained
  Bytes total_memory_;
  Bytes granularity_;
  DeviceCapabilities capabilities_;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_DEVICE_H_

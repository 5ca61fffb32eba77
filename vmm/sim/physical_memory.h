// The physical memory of the simulated devices: how much there is, and the bytes themselves.

#ifndef EXPANSE_VMM_SIM_PHYSICAL_MEMORY_H_
#define EXPANSE_VMM_SIM_PHYSICAL_MEMORY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/sim/config.h"
#include "vmm/sim/host_pages.h"
#include "vmm/units.h"

namespace expanse::sim {

// The memory of one device.
//
// A budget of bytes, of which this process has committed some and other processes took some; and, in the real mode, a
// sparse file that holds the contents. With the `release_lag` quirk freed bytes stay unavailable until Settle().
//
// Invariants: committed <= peak, and committed never exceeds the total. Not synchronised: the simulator's mutex guards
// it.
class PhysicalMemory {
 public:
  // RESOURCE_EXHAUSTED if the host refuses the backing file.
  static absl::StatusOr<PhysicalMemory> Create(const DeviceConfig& device, const Config& config);

  // Commits memory and returns the offset of its bytes; empty if there is not enough left.
  [[nodiscard]] std::optional<uint64_t> Commit(Bytes size);
  void Free(uint64_t offset, Bytes size);
  // The device caught up: bytes freed so far can be used again.
  void Settle() { lagging_ = Bytes(); }
  void SetTakenByOthers(Bytes bytes) { others_ = bytes; }

  [[nodiscard]] Bytes total() const { return total_; }
  // What a commit could get now.
  [[nodiscard]] Bytes available() const;
  [[nodiscard]] Bytes committed() const { return committed_; }
  [[nodiscard]] Bytes committed_peak() const { return peak_; }
  void ResetPeak() { peak_ = committed_; }
  // Null in the accounting mode, which holds no contents.
  [[nodiscard]] SparseFile* file() { return file_ ? &*file_ : nullptr; }
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  static constexpr unsigned char kPoison = 0xCD;

  PhysicalMemory(Bytes total, bool poison, bool release_lag) : total_(total), poison_(poison), lag_(release_lag) {}

  Bytes total_;
  bool poison_;
  bool lag_;
  Bytes committed_;
  Bytes peak_;
  Bytes others_;
  Bytes lagging_;  // Freed, but not yet available.
  std::optional<SparseFile> file_;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_PHYSICAL_MEMORY_H_

// A CUDA driver that runs on the CPU: the same entry points with the same signatures and the same errors, in process.
//
// Create one, hand `driver()` to the code under test, queue work on streams with Launch(), move the virtual clock with
// Advance(), inject faults, and read hazards() and ledger() at the end. docs/simulator.md says what it models, how
// sure each rule is, and what it cannot show.
//
// Entry points carry no context argument, so one simulator at most lives in a process at a time; Create says so.
// Every function may be called from any thread. The simulator must outlive all users of its driver table.

#ifndef EXPANSE_VMM_SIM_SIMULATOR_H_
#define EXPANSE_VMM_SIM_SIMULATOR_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "vmm/driver.h"
#include "vmm/sim/config.h"
#include "vmm/units.h"

namespace expanse::sim {

// Virtual time since the simulator was made.
using VirtualTime = std::chrono::nanoseconds;

// Memory that queued work reads or writes.
struct Access {
  AddressRange range;
  bool writes = true;
};

// A breach of the rules that would corrupt memory or fault on a real device.
struct Hazard {
  enum class Kind {
    kUnmapUnderWork,  // a range was unmapped or remapped before queued work on it completed
    kRace,            // two pieces of work touch the same bytes, one writes, and nothing orders them
    kAccessFault,     // work was queued on bytes that are not mapped, or not accessible to the stream's device
    kContractBreach,  // a call that the driver documents as undefined, such as releasing a handle twice
  };
  Kind kind;
  std::string description;  // what happened, with addresses, streams and virtual times
};

// What is alive now. All zero once everything was given back.
struct Ledger {
  uint64_t reservations = 0;
  uint64_t mappings = 0;
  uint64_t handles = 0;              // live handle references
  uint64_t allocations = 0;          // physical allocations, by whatever they are kept alive
  uint64_t classic_allocations = 0;  // cuMemAlloc
  uint64_t contexts = 0;             // references to primary contexts
  uint64_t streams = 0;
  uint64_t events = 0;
  uint64_t descriptors = 0;  // exported file descriptors not known to be closed
  Bytes physical_bytes;      // committed on all devices, other processes apart
  Bytes address_bytes;       // reserved addresses

  [[nodiscard]] bool Balanced() const;  // everything above is zero
  [[nodiscard]] std::string ToString() const;
};

// Sums since the simulator was made or ResetCounters was called. Times are modelled, never measured, except
// `host_inside`, which is real host time spent inside the simulator, so that callers can subtract it.
struct Counters {
  std::array<uint64_t, kEntryPointCount> calls{};        // by EntryPoint
  std::array<VirtualTime, kEntryPointCount> modelled{};  // modelled driver time, by EntryPoint, all threads
  VirtualTime stalled{};                                 // what callers waited for queued work, in waits and syncs
  uint64_t handles_created = 0;
  std::chrono::nanoseconds host_inside{};

  [[nodiscard]] uint64_t TotalCalls() const;
  [[nodiscard]] VirtualTime TotalModelled() const;
};

class Simulator {
 public:
  // INVALID_ARGUMENT for a nonsensical configuration (named), FAILED_PRECONDITION if another simulator is alive,
  // RESOURCE_EXHAUSTED if the host refuses the backing memory.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Simulator>> Create(const Config& config);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  // The table of entry points, as if libcuda.so.1 had been loaded. cuInit has not been called yet.
  [[nodiscard]] const Driver& driver() const;
  [[nodiscard]] const Config& config() const;

  // --- Time -------------------------------------------------------------------------------------------------------
  [[nodiscard]] VirtualTime now() const;
  // Moves the clock forward; queued work whose end is passed completes.
  void Advance(VirtualTime by);

  // --- Queued work ------------------------------------------------------------------------------------------------
  // Queues work of the given duration on a stream, as a kernel launch would: it starts when the stream's earlier work
  // and the events the stream waits for are done. Ranges are checked when it is queued and guarded until it completes.
  // Returns what cuLaunchKernel would.
  abi::Result Launch(StreamHandle stream, VirtualTime duration, absl::Span<const Access> accesses);
  // The same, but the work ends at the given virtual time, or at once after the stream's earlier work if that is later.
  abi::Result LaunchUntil(StreamHandle stream, VirtualTime end, absl::Span<const Access> accesses);

  // --- Faults -----------------------------------------------------------------------------------------------------
  // The n-th call from now (1 is the next) of this entry point returns `result` and does nothing else. One at a time
  // per entry point; a later one replaces it.
  void FailNthCall(EntryPoint entry_point, uint64_t n, abi::Result result);
  // The n-th call from now of any entry point that touches memory, mappings, events or streams (cuGetError*, cuInit and
  // the other pure queries are not counted).
  void FailNthCallOfAny(uint64_t n, abi::Result result);
  // How many calls FailNthCallOfAny would have counted so far; subtract two readings to know how many to fail in turn.
  [[nodiscard]] uint64_t FailableCalls() const;
  // cuMemCreate and cuMemAlloc fail once this many more bytes were created.
  void FailCreateAfter(Bytes bytes);
  // Makes every context's error sticky, as a fault in a kernel would.
  void MakeSticky(abi::Result result);
  // Adds to the modelled cost of every call of this entry point.
  void DelayCalls(EntryPoint entry_point, VirtualTime by);
  // Ends every fault above. A sticky error stays until ResetStickyError, which no real driver offers.
  void ClearFaults();
  void ResetStickyError();
  // Another process takes (or, with a smaller figure, gives back) memory of this device, in total `bytes`.
  void SetTakenByOthers(DeviceOrdinal device, Bytes bytes);

  // --- Observation ------------------------------------------------------------------------------------------------
  [[nodiscard]] std::vector<Hazard> hazards() const;
  [[nodiscard]] uint64_t hazard_count() const;
  void ClearHazards();
  [[nodiscard]] Ledger ledger() const;
  [[nodiscard]] Counters counters() const;
  void ResetCounters();
  // Committed bytes of one device, without what others took, and their peak since the last ResetCounters.
  [[nodiscard]] Bytes committed(DeviceOrdinal device) const;
  [[nodiscard]] Bytes committed_peak(DeviceOrdinal device) const;
  // Whether every byte of the range is mapped and accessible read-write to its device.
  [[nodiscard]] bool IsMapped(AddressRange range) const;
  // Whether all queued work is complete at the present virtual time.
  [[nodiscard]] bool Idle() const;
  // OK, or what is inconsistent inside the simulator itself.
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  class Impl;
  explicit Simulator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_SIMULATOR_H_

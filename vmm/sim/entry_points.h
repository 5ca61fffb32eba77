// How an entry point, a plain C function, reaches the simulator, and what happens on the way in and out.

#ifndef EXPANSE_VMM_SIM_ENTRY_POINTS_H_
#define EXPANSE_VMM_SIM_ENTRY_POINTS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "vmm/driver.h"
#include "vmm/mutex.h"
#include "vmm/sim/driver_state.h"
#include "vmm/sim/entry_traits.h"

namespace expanse::sim {

// The one simulator of the process, as the entry points see it.
struct LiveDriver {
  LiveDriver(const Config& config, std::vector<PhysicalMemory> memories, uint64_t number)
      : state(config, std::move(memories), number) {}

  Mutex mu;
  DriverState state ABSL_GUARDED_BY(mu);
  // How often this process image had been forked when cuInit succeeded; negative before. Read before the lock is
  // taken, for in a forked child some other thread of the parent may have held it.
  std::atomic<int64_t> forks_at_init{-1};

  // The simulator that entry points talk to; null if there is none.
  static std::atomic<LiveDriver*>& Current();
  // How many forks lie between the first process and this one. Counts from the first call on.
  static int64_t Forks();
};

// The frame of every entry point: forked child, initialisation, count, injected fault, sticky error, `body` (which
// checks the arguments and acts, given the state), cost.
template <typename Body>
abi::Result Enter(EntryPoint entry_point, Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  LiveDriver* live = LiveDriver::Current().load(std::memory_order_acquire);
  if (live == nullptr) return abi::kDeinitialized;
  const int64_t forks_at_init = live->forks_at_init.load(std::memory_order_relaxed);
  if (forks_at_init >= 0 && forks_at_init != LiveDriver::Forks()) return abi::kNotInitialized;
  const EntryTraits& traits = TraitsOf(entry_point);
  MutexLock lock(live->mu);
  DriverState& state = live->state;
  if (traits.needs_init && !state.initialized) return abi::kNotInitialized;
  ++state.counters.calls[static_cast<size_t>(entry_point)];
  abi::Result result;
  if (const std::optional<abi::Result> injected = state.faults.OnCall(entry_point, traits.failable)) {
    result = *injected;
  } else {
    result = state.BeforeArguments(entry_point);
    if (result == abi::kSuccess) result = body(state);
    state.Charge(entry_point);
  }
  state.counters.host_inside += std::chrono::steady_clock::now() - begin;
  return result;
}

// Each sets the members of its group.
void FillDeviceEntryPoints(Driver& driver);
void FillContextEntryPoints(Driver& driver);
void FillVirtualMemoryEntryPoints(Driver& driver);
void FillClassicMemoryEntryPoints(Driver& driver);
void FillPointerEntryPoints(Driver& driver);
void FillCopyEntryPoints(Driver& driver);
void FillStreamEntryPoints(Driver& driver);
// The members that are still null: each returns CUDA_ERROR_NOT_SUPPORTED.
void FillUnsupportedEntryPoints(Driver& driver);

// The device of a stream that a call names, and the stream; 400 if there is no such stream, 201 for a default stream
// without a context, or the context's sticky error.
struct ResolvedStream {
  StreamId id{};
  Timeline::StreamInfo info;
};
[[nodiscard]] abi::Result ResolveStream(DriverState& state, abi::Stream stream, ResolvedStream* resolved);

// The physical bytes behind a range, as work touches them. `accessible` says whether every byte is mapped and the
// device may use it so; if not, the extents are of what is.
struct ResolvedRange {
  std::vector<PhysicalExtent> extents;
  bool accessible = true;
};
[[nodiscard]] ResolvedRange ResolveRange(DriverState& state, AddressRange range, bool writes, DeviceOrdinal device);

// Reports the races of work that was just queued, each with the addresses at which that work meets the other.
void ReportRaces(DriverState& state, const QueuedWork& queued, absl::Span<const WorkAccess> accesses);

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_ENTRY_POINTS_H_

// Failures on demand.

#ifndef EXPANSE_VMM_SIM_FAULT_INJECTOR_H_
#define EXPANSE_VMM_SIM_FAULT_INJECTOR_H_

#include <array>
#include <cstdint>
#include <optional>

#include "vmm/abi.h"
#include "vmm/driver.h"
#include "vmm/sim/simulator.h"

namespace expanse::sim {

// Decides for each call whether it fails. Faults of Simulator's "Faults" section, which documents them.
// Not synchronised: the simulator's mutex guards it.
class FaultInjector {
 public:
  void FailNthCall(EntryPoint entry_point, uint64_t n, abi::Result result);
  void FailNthCallOfAny(uint64_t n, abi::Result result);
  void FailCreateAfter(Bytes bytes) { create_budget_ = bytes; }
  void DelayCalls(EntryPoint entry_point, VirtualTime by) { delays_[static_cast<size_t>(entry_point)] = by; }
  void Clear();

  // Counts a call; the result it is to return instead of doing anything, if it was chosen. O(1).
  [[nodiscard]] std::optional<abi::Result> OnCall(EntryPoint entry_point, bool failable);
  // Whether that much memory may be created, and that it was.
  [[nodiscard]] bool AllowsCreate(Bytes bytes) const { return !create_budget_ || bytes <= *create_budget_; }
  void NoteCreated(Bytes bytes) {
    if (create_budget_) *create_budget_ -= bytes;
  }
  [[nodiscard]] VirtualTime DelayOf(EntryPoint entry_point) const { return delays_[static_cast<size_t>(entry_point)]; }
  [[nodiscard]] uint64_t failable_calls() const { return failable_calls_; }

 private:
  struct Countdown {
    uint64_t left = 0;  // 0: off
    abi::Result result = abi::kSuccess;
    // Whether this call is the one.
    bool Hits() { return left > 0 && --left == 0; }
  };

  std::array<Countdown, kEntryPointCount> by_entry_point_{};
  Countdown any_;
  std::optional<Bytes> create_budget_;
  std::array<VirtualTime, kEntryPointCount> delays_{};
  uint64_t failable_calls_ = 0;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_FAULT_INJECTOR_H_

// Primary contexts, and which one is current in each thread.

#ifndef EXPANSE_VMM_SIM_CONTEXTS_H_
#define EXPANSE_VMM_SIM_CONTEXTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "vmm/abi.h"
#include "vmm/units.h"

namespace expanse::sim {

// The primary context of each device: its reference count and its sticky error. A context is live while it has
// references; its value is the same each time. Not synchronised: the simulator's mutex guards it.
class Contexts {
 public:
  explicit Contexts(int devices) : primary_(static_cast<size_t>(devices)) {}

  // Adds a reference and returns the context.
  abi::Context Retain(DeviceOrdinal device);
  // Drops a reference, the last of which ends the context and its sticky error. False if there was none.
  [[nodiscard]] bool Release(DeviceOrdinal device);
  [[nodiscard]] bool IsLive(DeviceOrdinal device) const { return At(device).references > 0; }
  // The device whose primary context this is; empty for a value that never was a context.
  [[nodiscard]] std::optional<DeviceOrdinal> DeviceOf(abi::Context context) const;
  [[nodiscard]] abi::Context ContextOf(DeviceOrdinal device) const;

  // The error that every call in this context returns; kSuccess if there is none.
  [[nodiscard]] abi::Result sticky(DeviceOrdinal device) const { return At(device).sticky; }
  // The first such error of any device.
  [[nodiscard]] abi::Result AnySticky() const;
  // The first error of a context is the one that stays.
  void MakeSticky(DeviceOrdinal device, abi::Result result);
  void ResetSticky();

  [[nodiscard]] uint64_t references() const { return references_; }
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Primary {
    uint64_t references = 0;
    abi::Result sticky = abi::kSuccess;
  };
  [[nodiscard]] const Primary& At(DeviceOrdinal device) const { return primary_[static_cast<size_t>(device.value())]; }
  [[nodiscard]] Primary& At(DeviceOrdinal device) { return primary_[static_cast<size_t>(device.value())]; }

  std::vector<Primary> primary_;
  uint64_t references_ = 0;  // The sum.
};

// What the driver keeps for each thread. Needs no lock.
struct ThreadState {
  std::vector<abi::Context> stack;  // of contexts; the last is current
  int capture_mode = abi::kCaptureGlobal;

  [[nodiscard]] abi::Context current() const { return stack.empty() ? nullptr : stack.back(); }
  // The calling thread's state in the simulator of that number; a new simulator starts with a new state.
  static ThreadState& Of(uint64_t simulator);
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_CONTEXTS_H_

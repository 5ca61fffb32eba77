// The one simulated driver of a process that was linked or loaded as libcuda.so.1.

#ifndef EXPANSE_VMM_SIM_SHARED_PROCESS_DRIVER_H_
#define EXPANSE_VMM_SIM_SHARED_PROCESS_DRIVER_H_

#include <memory>
#include <optional>

#include "vmm/driver.h"
#include "vmm/sim/simulator.h"

namespace expanse::sim {

// Made at the first call of any entry point, from the environment variable EXPANSE_SIM, and never destroyed, as exit
// handlers of the program may still call the driver. A mistake in the variable is said on standard error; then cuInit
// fails, as do all calls that need it.
//
// Immutable once made, so it needs no lock.
class ProcessDriver {
 public:
  static const ProcessDriver& Get();

  [[nodiscard]] const Driver& table() const { return table_; }
  // What to answer instead of calling the entry point; empty if it may be called.
  [[nodiscard]] std::optional<abi::Result> Refusal(EntryPoint entry_point) const;
  // What cuDriverGetVersion says.
  [[nodiscard]] int version() const { return version_; }

 private:
  ProcessDriver();
  void Use(std::unique_ptr<Simulator> simulator);
  static void Report();

  std::unique_ptr<Simulator> simulator_;
  Driver table_;
  int version_ = 0;
  bool refused_ = false;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_SHARED_PROCESS_DRIVER_H_

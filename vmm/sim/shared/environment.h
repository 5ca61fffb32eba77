// The configuration of the simulated driver as text, for programs that cannot call Simulator::Create.

#ifndef EXPANSE_VMM_SIM_SHARED_ENVIRONMENT_H_
#define EXPANSE_VMM_SIM_SHARED_ENVIRONMENT_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "vmm/sim/config.h"

namespace expanse::sim {

// What the environment variable EXPANSE_SIM says.
struct Environment {
  Config config;
  // Print calls, ledger and hazards to standard error when the process ends.
  bool report = false;
};

// Parses comma-separated key=value pairs, as "devices=2,memory=16GiB,costs=slow"; docs/simulator.md lists the keys.
// An empty text is the default configuration, and of a key given twice the second counts. INVALID_ARGUMENT names the
// key or the value that is wrong. Reads the file that costs= names, if it is no preset.
[[nodiscard]] absl::StatusOr<Environment> ParseEnvironment(std::string_view text);

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_SHARED_ENVIRONMENT_H_

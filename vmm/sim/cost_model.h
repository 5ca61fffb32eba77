// What driver calls are modelled to cost. Nothing computed from this is a measurement, and every figure that is
// printed from it is called modelled.

#ifndef EXPANSE_VMM_SIM_COST_MODEL_H_
#define EXPANSE_VMM_SIM_COST_MODEL_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse::sim {

// The cost of one entry point in microseconds: per_call + per_handle * handles + per_mib * MiB, where handles is the
// number of mappings or handles the call touches and MiB the bytes it covers.
struct CallCost {
  double per_call = 0;
  double per_handle = 0;
  double per_mib = 0;
};

struct CostModel {
  std::string name;
  std::array<CallCost, kEntryPointCount> costs{};

  [[nodiscard]] double Microseconds(EntryPoint entry_point, uint64_t handles, Bytes bytes) const;

  // The preset named "default" (an A100-class device).
  static CostModel Default();
  // Every call costs nothing.
  static CostModel Free();
  // A preset by name; NOT_FOUND lists the names there are.
  static absl::StatusOr<CostModel> Preset(std::string_view name);
  static std::vector<std::string> PresetNames();
  // Parses a cost file: one line per entry point, `symbol per_call per_handle per_mib`, `#` comments. Entry points not
  // named keep the default preset's cost; a file that names none is refused, for its results would be the default's
  // under another name. INVALID_ARGUMENT names line and value.
  static absl::StatusOr<CostModel> Parse(std::string_view text, std::string_view file_name);
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_COST_MODEL_H_

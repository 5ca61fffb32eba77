// The driver's names and texts for its results.

#ifndef EXPANSE_VMM_SIM_ERROR_TEXT_H_
#define EXPANSE_VMM_SIM_ERROR_TEXT_H_

#include "vmm/abi.h"

namespace expanse::sim {

// As cuGetErrorName and cuGetErrorString give them; null for a result that is not known.
[[nodiscard]] const char* ErrorName(abi::Result result);
[[nodiscard]] const char* ErrorString(abi::Result result);

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_ERROR_TEXT_H_

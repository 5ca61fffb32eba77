// What an out-of-memory error tells.

#ifndef EXPANSE_CORE_OUT_OF_MEMORY_H_
#define EXPANSE_CORE_OUT_OF_MEMORY_H_

#include <string>

#include "absl/status/status.h"
#include "core/shortage.h"

namespace expanse {

// The setting that would have let the request succeed, and why; empty if none would.
[[nodiscard]] std::string HelpfulSetting(const Shortage& shortage);

// RESOURCE_EXHAUSTED with all that the shortage says in words.
[[nodiscard]] absl::Status OutOfMemoryError(const Shortage& shortage);

}  // namespace expanse

#endif  // EXPANSE_CORE_OUT_OF_MEMORY_H_

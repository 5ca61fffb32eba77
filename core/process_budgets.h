// What all allocators of the process share, because the driver limits it per process: handles of physical memory, and
// addresses. Thread-safe; O(1); no driver call.

#ifndef EXPANSE_CORE_PROCESS_BUDGETS_H_
#define EXPANSE_CORE_PROCESS_BUDGETS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse {

struct ProcessBudgets {
  uint64_t handles_limit = 0;
  uint64_t handles_taken = 0;  // one a chunk
  Bytes addresses_limit;
  Bytes addresses_taken;
};

[[nodiscard]] ProcessBudgets GetProcessBudgets();

// From now on allocators take no more than so many handles, or addresses, in all. What is taken already stays taken,
// even if it is more. INVALID_ARGUMENT for none at all, or for more addresses than the driver has.
absl::Status SetProcessHandleBudget(uint64_t handles);
absl::Status SetProcessAddressBudget(Bytes addresses);

}  // namespace expanse

#endif  // EXPANSE_CORE_PROCESS_BUDGETS_H_

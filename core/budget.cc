#include "core/budget.h"

#include "absl/strings/str_cat.h"
#include "core/process_budgets.h"

namespace expanse {

// Never destroyed: allocators with static storage may outlive any other static object.
Budget& ProcessHandleBudget() {
  static Budget& budget = *new Budget(kHandleBudget);
  return budget;
}

Budget& ProcessAddressBudget() {
  static Budget& budget = *new Budget(kAddressBudget.count());
  return budget;
}

ProcessBudgets GetProcessBudgets() {
  ProcessBudgets budgets;
  budgets.handles_limit = ProcessHandleBudget().limit();
  budgets.handles_taken = ProcessHandleBudget().taken();
  budgets.addresses_limit = Bytes(ProcessAddressBudget().limit());
  budgets.addresses_taken = Bytes(ProcessAddressBudget().taken());
  return budgets;
}

absl::Status SetProcessHandleBudget(uint64_t handles) {
  if (handles == 0) return absl::InvalidArgumentError("the handle budget is 0, expected at least 1");
  ProcessHandleBudget().set_limit(handles);
  return absl::OkStatus();
}

absl::Status SetProcessAddressBudget(Bytes addresses) {
  if (addresses.is_zero() || addresses > kUserAddresses) {
    return absl::InvalidArgumentError(absl::StrCat("the address budget is ", ToString(addresses),
                                                   ", expected more than nothing and at most ",
                                                   ToString(kUserAddresses)));
  }
  ProcessAddressBudget().set_limit(addresses.count());
  return absl::OkStatus();
}

}  // namespace expanse

#include "core/budget.h"

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

}  // namespace expanse

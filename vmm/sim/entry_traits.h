// What the simulator does alike for many entry points, as a property of each.

#ifndef EXPANSE_VMM_SIM_ENTRY_TRAITS_H_
#define EXPANSE_VMM_SIM_ENTRY_TRAITS_H_

#include "vmm/driver.h"

namespace expanse::sim {

struct EntryTraits {
  // Which sticky errors a call returns before it looks at its arguments.
  enum class Sticky {
    kNone,     // it works whatever state the contexts are in
    kCurrent,  // that of the calling thread's current context
    kAny,      // it needs no context: any context's, if Quirks::context_free_calls_see_sticky
  };

  bool needs_init = true;
  bool failable = false;  // counted by FailNthCallOfAny and FailableCalls
  bool vmm = false;       // one of the virtual memory calls, for Quirks::vmm_needs_context
  Sticky sticky = Sticky::kNone;
};

[[nodiscard]] const EntryTraits& TraitsOf(EntryPoint entry_point);

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_ENTRY_TRAITS_H_

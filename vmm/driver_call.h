// From the result of a driver call to a status that names the call and its arguments.
//
//   abi::Result result = driver.mem_unmap(address.value(), size.count());
//   return CallStatus(driver, result, EntryPoint::mem_unmap, "address=", absl::Hex(address.value()), ...);
//
// Success costs one comparison: the message is put together only for a failure.

#ifndef EXPANSE_VMM_DRIVER_CALL_H_
#define EXPANSE_VMM_DRIVER_CALL_H_

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "vmm/driver.h"

namespace expanse {

// ToStatus for a call that failed, with `arguments` between the parentheses after the entry point's name.
[[nodiscard]] absl::Status FailedCallStatus(const Driver& driver, abi::Result result, EntryPoint entry_point,
                                            absl::string_view arguments);

// The status of a call; `arguments` are joined as absl::StrCat does.
template <typename... Arguments>
[[nodiscard]] absl::Status CallStatus(const Driver& driver, abi::Result result, EntryPoint entry_point,
                                      const Arguments&... arguments) {
  if (ABSL_PREDICT_TRUE(result == abi::kSuccess)) return absl::OkStatus();
  return FailedCallStatus(driver, result, entry_point, absl::StrCat(arguments...));
}

// For what must not be left undone because nobody can try later: giving things back in a destructor, or undoing. Calls
// once more after a refusal, unless it is of the kind that never ends; returns the last answer. A call that fails is
// taken to have done nothing.
template <typename Call>
abi::Result Insist(Call call) {
  const abi::Result result = call();
  return result == abi::kSuccess || IsStickyError(result) ? result : call();
}

}  // namespace expanse

#endif  // EXPANSE_VMM_DRIVER_CALL_H_

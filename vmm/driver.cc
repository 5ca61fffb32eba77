#include "vmm/driver.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "vmm/driver_call.h"

namespace expanse {
namespace {

constexpr std::string_view kSymbols[] = {
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) #symbol,
#include "vmm/driver_entry_points.inc"
};
static_assert(sizeof(kSymbols) / sizeof(kSymbols[0]) == kEntryPointCount);

absl::StatusCode CodeOf(abi::Result result) {
  switch (result) {
    case abi::kSuccess:
      return absl::StatusCode::kOk;
    case abi::kOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case abi::kInvalidValue:
    case abi::kInvalidDevice:
    case abi::kInvalidContext:
    case abi::kInvalidHandle:
      return absl::StatusCode::kInvalidArgument;
    case abi::kNotReady:
      return absl::StatusCode::kUnavailable;
    case abi::kNotSupported:
    case abi::kCallRequiresNewerDriver:
      return absl::StatusCode::kUnimplemented;
    case abi::kNotPermitted:
      return absl::StatusCode::kPermissionDenied;
    case abi::kNotInitialized:
    case abi::kDeinitialized:
    case abi::kContextIsDestroyed:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

std::string_view SymbolName(EntryPoint entry_point) { return kSymbols[static_cast<int>(entry_point)]; }

absl::Status ToStatus(const Driver& driver, abi::Result result, std::string_view call) {
  if (result == abi::kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  if (driver.get_error_name == nullptr || driver.get_error_name(result, &name) != abi::kSuccess) name = nullptr;
  return absl::Status(CodeOf(result),
                      absl::StrCat(std::string(call), ": ", name != nullptr ? name : "unknown driver error", " (",
                                   static_cast<int>(result), ")"));
}

absl::Status FailedCallStatus(const Driver& driver, abi::Result result, EntryPoint entry_point,
                              absl::string_view arguments) {
  return ToStatus(driver, result, absl::StrCat(std::string(SymbolName(entry_point)), "(", arguments, ")"));
}

bool IsStickyError(abi::Result result) {
  // Those of which cuda.h says that the process is left in an inconsistent state or the context cannot be used any
  // more.
  switch (static_cast<int>(result)) {
    case 214:  // ECC_UNCORRECTABLE
    case 226:  // CONTAINED
    case 700:  // ILLEGAL_ADDRESS
    case 702:  // LAUNCH_TIMEOUT
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
      return true;
    default:
      return false;
  }
}

}  // namespace expanse

// LoadCudaDriver: the driver table of libcuda.so.1.

#include <dlfcn.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "vmm/driver.h"

namespace expanse {
namespace {

enum class Need { REQUIRED, OPTIONAL };

// Looks up one symbol. A missing one is null in the table; a missing required one is also named.
template <typename Function>
void Resolve(void* library, const char* symbol, Need need, Function& member, std::string& missing) {
  member = reinterpret_cast<typename Function::Pointer>(dlsym(library, symbol));
  if (member == nullptr && need == Need::REQUIRED) absl::StrAppend(&missing, missing.empty() ? "" : ", ", symbol);
}

absl::Status Unavailable(const std::string& path, absl::string_view reason) {
  return absl::UnavailableError(absl::StrCat("no CUDA driver in ", path, ": ", reason));
}

}  // namespace

absl::StatusOr<Driver> LoadCudaDriver(const std::string& path) {
  // Never closed: the driver keeps threads and exit handlers of its own, and tables may outlive whoever loaded it.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return Unavailable(path, reason != nullptr ? reason : "it cannot be loaded");
  }

  Driver driver;
  std::string missing;
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) \
  Resolve(library, #symbol, Need::need, driver.member, missing);
#include "vmm/driver_entry_points.inc"
  if (!missing.empty()) return Unavailable(path, absl::StrCat("it lacks ", missing));

  // The toolkit's stub, which exists to be linked against, answers every call with the same error; a real driver
  // answers this one even before it is initialised.
  int version = 0;
  const abi::Result version_result = driver.driver_get_version(&version);
  if (version_result != abi::kSuccess) {
    const absl::Status error = ToStatus(driver, version_result, "cuDriverGetVersion()");
    return Unavailable(path, absl::StrCat("it is a stub that answers nothing: ", error.message()));
  }
  const abi::Result init_result = driver.init(0);
  if (init_result != abi::kSuccess) {
    return Unavailable(path, ToStatus(driver, init_result, "cuInit(flags=0)").message());
  }
  return driver;
}

}  // namespace expanse

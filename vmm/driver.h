// The seam between this library and the CUDA driver: a table of function pointers with the driver's own signatures.
//
// There are two ways to fill it. LoadCudaDriver() takes the entry points of libcuda.so.1; the simulated driver in
// vmm/sim gives its own. Nothing above this header can tell which one it is talking to.

#ifndef EXPANSE_VMM_DRIVER_H_
#define EXPANSE_VMM_DRIVER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/abi.h"
#include "vmm/driver_function.h"

namespace expanse {

// One enumerator per entry point, in the order of driver_entry_points.inc: EntryPoint::mem_create and so on.
enum class EntryPoint : int {
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) member,
#include "vmm/driver_entry_points.inc"
};

inline constexpr int kEntryPointCount = 0
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) +1
#include "vmm/driver_entry_points.inc"
    ;

// The exported name, as "cuMemCreate". O(1).
[[nodiscard]] std::string_view SymbolName(EntryPoint entry_point);

// The table. Copyable, and a copy counts its calls where the original does; the functions outlive every copy (libcuda
// is never unloaded; a simulator outlives its users). Members named OPTIONAL in driver_entry_points.inc may be null.
// Every function may be called from any thread.
struct Driver {
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) DriverFunction<abi::Result parameters> member;
#include "vmm/driver_entry_points.inc"
};

// Loads libcuda.so.1, or the library at `path` if one is given, fills the table, and calls cuInit(0).
//
// Errors: UNAVAILABLE, naming the reason: the library is not there; a required symbol is missing (named); the library
// is the toolkit's stub, which answers nothing; cuInit failed (with the driver's name for the error).
// Blocks while the driver initialises (up to seconds). Thread-safe. The library stays loaded until the process ends.
[[nodiscard]] absl::StatusOr<Driver> LoadCudaDriver(const std::string& path = "libcuda.so.1");

// Turns a driver result into a status. `kSuccess` is OK. The message has the driver's name for the error, its number,
// and `call`, which is the call with its arguments: "cuMemCreate(size=2097152, device=0): CUDA_ERROR_OUT_OF_MEMORY
// (2)".
//
// The codes, which callers may rely on:
//   out of memory                                             RESOURCE_EXHAUSTED
//   invalid value, device, context or handle                  INVALID_ARGUMENT
//   not ready                                                 UNAVAILABLE
//   not supported, newer driver needed                        UNIMPLEMENTED
//   not permitted                                             PERMISSION_DENIED
//   not initialised, deinitialised, context destroyed         FAILED_PRECONDITION
//   anything else: sticky errors, unknown, operating system   INTERNAL
[[nodiscard]] absl::Status ToStatus(const Driver& driver, abi::Result result, std::string_view call);

// Whether `result` makes every later call in the context fail with it too (700, 719 and their like), so that nothing
// can be undone any more.
[[nodiscard]] bool IsStickyError(abi::Result result);

}  // namespace expanse

#endif  // EXPANSE_VMM_DRIVER_H_

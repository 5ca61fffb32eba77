// The symbols that the simulated libcuda.so.1 exports.

#ifndef EXPANSE_VMM_SIM_SHARED_EXPORTS_H_
#define EXPANSE_VMM_SIM_SHARED_EXPORTS_H_

#include <cstddef>

#include "vmm/abi.h"
#include "vmm/driver.h"

namespace expanse {

extern "C" {

#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) abi::Result symbol parameters;
#include "vmm/driver_entry_points.inc"

// Synchronous copies and fills, on the legacy stream of the current context.
abi::Result cuMemcpy(abi::DevicePtr dst, abi::DevicePtr src, size_t bytes);
abi::Result cuMemcpyHtoD_v2(abi::DevicePtr dst, const void* src, size_t bytes);
abi::Result cuMemcpyDtoH_v2(void* dst, abi::DevicePtr src, size_t bytes);
abi::Result cuMemcpyDtoD_v2(abi::DevicePtr dst, abi::DevicePtr src, size_t bytes);
abi::Result cuMemsetD8_v2(abi::DevicePtr dst, unsigned char value, size_t bytes);

// Finds a symbol by its name without a version suffix. The first is CUDA 11.3's, the second CUDA 12.0's.
abi::Result cuGetProcAddress(const char* symbol, void** function, int cuda_version, abi::u64 flags);
abi::Result cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, abi::u64 flags, int* status);

#define EXPANSE_UNSUPPORTED(symbol) abi::Result symbol();
#include "vmm/sim/shared/unsupported_symbols.inc"

}  // extern "C"

}  // namespace expanse

#endif  // EXPANSE_VMM_SIM_SHARED_EXPORTS_H_

// cuGetProcAddress: symbols by base name and version.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "vmm/sim/shared/exports.h"
#include "vmm/sim/shared/process_driver.h"

namespace expanse {
namespace {

// CUdriverProcAddressQueryResult.
enum QueryResult : int { kFound = 0, kSymbolNotFound = 1, kVersionNotSufficient = 2 };

// CU_GET_PROC_ADDRESS_*: the default, the legacy default stream, the per-thread default stream.
constexpr abi::u64 kFlagPerThread = 2;

constexpr int kFirstVersionWithV2 = 12000;  // of cuGetProcAddress itself
constexpr int kNoLaterVersion = INT32_MAX;

// The versions of CUDA for which a base name means this symbol: from `since` to just below `until`. As in
// cudaTypedefs.h of CUDA 13.0.
struct Versions {
  absl::string_view symbol;
  int since;
  int until;
};
constexpr Versions kVersions[] = {
    {"cuInit", 2000, kNoLaterVersion},
    {"cuDriverGetVersion", 2020, kNoLaterVersion},
    {"cuGetErrorName", 6000, kNoLaterVersion},
    {"cuGetErrorString", 6000, kNoLaterVersion},
    {"cuDeviceGet", 2000, kNoLaterVersion},
    {"cuDeviceGetCount", 2000, kNoLaterVersion},
    {"cuDeviceGetName", 2000, kNoLaterVersion},
    {"cuDeviceGetUuid_v2", 11040, kNoLaterVersion},
    {"cuDeviceTotalMem_v2", 3020, kNoLaterVersion},
    {"cuDeviceGetAttribute", 2000, kNoLaterVersion},
    {"cuDeviceCanAccessPeer", 4000, kNoLaterVersion},
    {"cuDevicePrimaryCtxRetain", 7000, kNoLaterVersion},
    {"cuDevicePrimaryCtxRelease_v2", 11000, kNoLaterVersion},
    {"cuDevicePrimaryCtxGetState", 7000, kNoLaterVersion},
    {"cuCtxGetCurrent", 4000, kNoLaterVersion},
    {"cuCtxSetCurrent", 4000, kNoLaterVersion},
    {"cuCtxPushCurrent_v2", 4000, kNoLaterVersion},
    {"cuCtxPopCurrent_v2", 4000, kNoLaterVersion},
    {"cuCtxGetDevice", 2000, 13000},
    {"cuCtxSynchronize", 2000, 13000},
    {"cuMemGetInfo_v2", 3020, kNoLaterVersion},
    {"cuMemAlloc_v2", 3020, kNoLaterVersion},
    {"cuMemFree_v2", 3020, kNoLaterVersion},
    {"cuMemGetAddressRange_v2", 3020, kNoLaterVersion},
    {"cuPointerGetAttribute", 4000, kNoLaterVersion},
    {"cuMemGetAllocationGranularity", 10020, kNoLaterVersion},
    {"cuMemAddressReserve", 10020, kNoLaterVersion},
    {"cuMemAddressFree", 10020, kNoLaterVersion},
    {"cuMemCreate", 10020, kNoLaterVersion},
    {"cuMemRelease", 10020, kNoLaterVersion},
    {"cuMemMap", 10020, kNoLaterVersion},
    {"cuMemUnmap", 10020, kNoLaterVersion},
    {"cuMemSetAccess", 10020, kNoLaterVersion},
    {"cuMemGetAccess", 10020, kNoLaterVersion},
    {"cuMemRetainAllocationHandle", 11000, kNoLaterVersion},
    {"cuMemGetAllocationPropertiesFromHandle", 10020, kNoLaterVersion},
    {"cuMemExportToShareableHandle", 10020, kNoLaterVersion},
    {"cuMemImportFromShareableHandle", 10020, kNoLaterVersion},
    {"cuMemAllocAsync", 11020, kNoLaterVersion},
    {"cuMemFreeAsync", 11020, kNoLaterVersion},
    {"cuDeviceGetDefaultMemPool", 11020, kNoLaterVersion},
    {"cuMemPoolTrimTo", 11020, kNoLaterVersion},
    {"cuMemPoolSetAttribute", 11020, kNoLaterVersion},
    {"cuMemPoolGetAttribute", 11020, kNoLaterVersion},
    {"cuMemPoolCreate", 11020, kNoLaterVersion},
    {"cuMemPoolDestroy", 11020, kNoLaterVersion},
    {"cuMemcpyAsync", 4000, kNoLaterVersion},
    {"cuMemcpyHtoDAsync_v2", 3020, kNoLaterVersion},
    {"cuMemcpyDtoHAsync_v2", 3020, kNoLaterVersion},
    {"cuMemcpyDtoDAsync_v2", 3020, kNoLaterVersion},
    {"cuMemsetD8Async", 3020, kNoLaterVersion},
    {"cuMemcpy", 4000, kNoLaterVersion},
    {"cuMemcpyHtoD_v2", 3020, kNoLaterVersion},
    {"cuMemcpyDtoH_v2", 3020, kNoLaterVersion},
    {"cuMemcpyDtoD_v2", 3020, kNoLaterVersion},
    {"cuMemsetD8_v2", 3020, kNoLaterVersion},
    {"cuStreamCreate", 2000, kNoLaterVersion},
    {"cuStreamDestroy_v2", 4000, kNoLaterVersion},
    {"cuStreamSynchronize", 2000, kNoLaterVersion},
    {"cuStreamQuery", 2000, kNoLaterVersion},
    {"cuStreamWaitEvent", 3020, kNoLaterVersion},
    {"cuStreamGetId", 12000, kNoLaterVersion},
    {"cuStreamIsCapturing", 10000, kNoLaterVersion},
    {"cuStreamGetCaptureInfo_v2", 11030, 12030},
    {"cuThreadExchangeStreamCaptureMode", 10010, kNoLaterVersion},
    {"cuEventCreate", 2000, kNoLaterVersion},
    {"cuEventDestroy_v2", 4000, kNoLaterVersion},
    {"cuEventRecord", 2000, kNoLaterVersion},
    {"cuEventQuery", 2000, kNoLaterVersion},
    {"cuEventSynchronize", 2000, kNoLaterVersion},
    {"cuGetProcAddress", 11030, kFirstVersionWithV2},
    {"cuGetProcAddress_v2", kFirstVersionWithV2, kNoLaterVersion},
};

struct Symbol {
  absl::string_view name;
  void* function;
  bool uses_default_stream;  // has a variant for the per-thread default stream, which is not here
};

template <typename... Parameters>
constexpr bool TakesStream(abi::Result (*)(Parameters...)) {
  return (std::is_same_v<Parameters, abi::Stream> || ...);
}

template <typename Function>
Symbol MakeSymbol(absl::string_view name, Function* function, bool synchronous_copy = false) {
  return {name, reinterpret_cast<void*>(function), synchronous_copy || TakesStream(function)};
}

const std::vector<Symbol>& SupportedSymbols() {
  static const auto* symbols = new std::vector<Symbol>{
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) MakeSymbol(#symbol, &symbol),
#include "vmm/driver_entry_points.inc"
      MakeSymbol("cuMemcpy", &cuMemcpy, true),
      MakeSymbol("cuMemcpyHtoD_v2", &cuMemcpyHtoD_v2, true),
      MakeSymbol("cuMemcpyDtoH_v2", &cuMemcpyDtoH_v2, true),
      MakeSymbol("cuMemcpyDtoD_v2", &cuMemcpyDtoD_v2, true),
      MakeSymbol("cuMemsetD8_v2", &cuMemsetD8_v2, true),
      MakeSymbol("cuGetProcAddress", &cuGetProcAddress),
      MakeSymbol("cuGetProcAddress_v2", &cuGetProcAddress_v2),
  };
  return *symbols;
}

const std::vector<Symbol>& UnsupportedSymbols() {
  static const auto* symbols = new std::vector<Symbol>{
#define EXPANSE_UNSUPPORTED(symbol) MakeSymbol(#symbol, &symbol),
#include "vmm/sim/shared/unsupported_symbols.inc"
  };
  return *symbols;
}

// "cuMemAlloc" of "cuMemAlloc_v2".
absl::string_view BaseName(absl::string_view symbol) {
  const size_t suffix = symbol.rfind("_v");
  return suffix == absl::string_view::npos ? symbol : symbol.substr(0, suffix);
}

const Versions* FindVersions(absl::string_view symbol) {
  for (const Versions& versions : kVersions) {
    if (versions.symbol == symbol) return &versions;
  }
  return nullptr;
}

struct Query {
  void* function = nullptr;
  QueryResult result = kSymbolNotFound;
};

Query Find(absl::string_view base, int version, bool per_thread) {
  Query query;
  for (const Symbol& symbol : SupportedSymbols()) {
    if (BaseName(symbol.name) != base) continue;
    const Versions* versions = FindVersions(symbol.name);
    if (versions == nullptr || version >= versions->until || (per_thread && symbol.uses_default_stream)) continue;
    if (version >= versions->since) return {symbol.function, kFound};
    query.result = kVersionNotSufficient;
  }
  if (query.result == kVersionNotSufficient) return query;
  for (const Symbol& symbol : UnsupportedSymbols()) {
    if (BaseName(symbol.name) == base) return {symbol.function, kFound};
  }
  return query;
}

// What both versions of the call do.
abi::Result Look(const char* symbol, void** function, int cuda_version, abi::u64 flags, Query& query) {
  if (symbol == nullptr || function == nullptr || flags > kFlagPerThread) return abi::kInvalidValue;
  if (cuda_version > sim::ProcessDriver::Get().version()) return abi::kInvalidValue;
  query = Find(symbol, cuda_version, flags == kFlagPerThread);
  *function = query.function;
  return abi::kSuccess;
}

}  // namespace

extern "C" {

// It has no way to say why, so it fails.
abi::Result cuGetProcAddress(const char* symbol, void** function, int cuda_version, abi::u64 flags) {
  Query query;
  if (const abi::Result result = Look(symbol, function, cuda_version, flags, query); result != abi::kSuccess) {
    return result;
  }
  return query.result == kFound ? abi::kSuccess : abi::kNotFound;
}

abi::Result cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, abi::u64 flags, int* status) {
  Query query;
  const abi::Result result = Look(symbol, function, cuda_version, flags, query);
  if (result == abi::kSuccess && status != nullptr) *status = query.result;
  return result;
}

}  // extern "C"

}  // namespace expanse

#include "vmm/sim/error_text.h"

namespace expanse::sim {
namespace {

struct ErrorText {
  int result;
  const char* name;
  const char* text;
};

// The enumerators are cuda.h's; the texts say the same as the driver's in our own words, except for those of the
// commonest errors, which programs print and tests compare.
constexpr ErrorText kTexts[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "the library is a stub"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the call needs a newer driver"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {205, "CUDA_ERROR_MAP_FAILED", "mapping failed"},
    {206, "CUDA_ERROR_UNMAP_FAILED", "unmapping failed"},
    {208, "CUDA_ERROR_ALREADY_MAPPED", "the resource is already mapped"},
    {211, "CUDA_ERROR_NOT_MAPPED", "the resource is not mapped"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "an operating system call failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation is illegal in the present state"},
    {402, "CUDA_ERROR_LOSSY_QUERY", "the query would lose information"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access was not enabled"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "an assertion failed on the device"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {718, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "the driver and the kernel module do not match"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error invalidated the capture"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "the operation would merge two captures"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the stream's capture did not begin here"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "captured work was never joined"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "the capture would depend on work outside of it"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the capture would depend on the legacy stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "the event was last recorded in a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture was begun by another thread"},
    {909, "CUDA_ERROR_TIMEOUT", "the wait timed out"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorText* Find(abi::Result result) {
  for (const ErrorText& text : kTexts) {
    if (text.result == static_cast<int>(result)) return &text;
  }
  return nullptr;
}

}  // namespace

const char* ErrorName(abi::Result result) {
  const ErrorText* text = Find(result);
  return text == nullptr ? nullptr : text->name;
}

const char* ErrorString(abi::Result result) {
  const ErrorText* text = Find(result);
  return text == nullptr ? nullptr : text->text;
}

}  // namespace expanse::sim

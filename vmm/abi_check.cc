// Compares vmm/abi.h and driver_entry_points.inc with the toolkit's cuda.h. Compiled only where one is found; defines
// nothing.

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "vmm/abi.h"
#include "vmm/driver.h"

#if CUDA_VERSION >= 13000
// Still exported, but declared no longer: the plain name means the third version now.
extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                                              const CUgraphNode**, size_t*);
#endif

namespace expanse::abi {
namespace {

// --- Types
// ------------------------------------------------------------------------------------------------------------

#define SAME_TYPE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_FIELD(ours, our_field, theirs, their_field)                      \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(ours::our_field) == sizeof(theirs::their_field))

SAME_TYPE(u64, cuuint64_t);
SAME_TYPE(DevicePtr, CUdeviceptr);
SAME_TYPE(MemHandle, CUmemGenericAllocationHandle);
SAME_TYPE(Device, CUdevice);
SAME_TYPE(Context, CUcontext);
SAME_TYPE(Stream, CUstream);
SAME_TYPE(Event, CUevent);
SAME_TYPE(MemPool, CUmemoryPool);
SAME_TYPE(Graph, CUgraph);
SAME_TYPE(GraphNode, CUgraphNode);
SAME_TYPE(Result, CUresult);
SAME_TYPE(int, CUmemAllocationGranularity_flags);
SAME_TYPE(int, CUmemAllocationHandleType);
SAME_TYPE(int, CUmemPool_attribute);
SAME_TYPE(int, CUstreamCaptureMode);
SAME_TYPE(int, CUstreamCaptureStatus);
SAME_TYPE(int, CUdevice_attribute);
SAME_TYPE(int, CUpointer_attribute);

SAME_TYPE(Location, CUmemLocation);
SAME_FIELD(Location, type, CUmemLocation, type);
SAME_FIELD(Location, id, CUmemLocation, id);

SAME_TYPE(AllocationProp, CUmemAllocationProp);
SAME_FIELD(AllocationProp, type, CUmemAllocationProp, type);
SAME_FIELD(AllocationProp, requested_handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(AllocationProp, location, CUmemAllocationProp, location);
SAME_FIELD(AllocationProp, win32_handle_meta_data, CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(AllocationProp, alloc_flags, CUmemAllocationProp, allocFlags);
SAME_FIELD(AllocationProp, alloc_flags.compression_type, CUmemAllocationProp, allocFlags.compressionType);
SAME_FIELD(AllocationProp, alloc_flags.gpu_direct_rdma_capable, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_FIELD(AllocationProp, alloc_flags.usage, CUmemAllocationProp, allocFlags.usage);

SAME_TYPE(AccessDesc, CUmemAccessDesc);
SAME_FIELD(AccessDesc, location, CUmemAccessDesc, location);
SAME_FIELD(AccessDesc, flags, CUmemAccessDesc, flags);

SAME_TYPE(PoolProps, CUmemPoolProps);
SAME_FIELD(PoolProps, alloc_type, CUmemPoolProps, allocType);
SAME_FIELD(PoolProps, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(PoolProps, location, CUmemPoolProps, location);
SAME_FIELD(PoolProps, win32_security_attributes, CUmemPoolProps, win32SecurityAttributes);
SAME_FIELD(PoolProps, max_size, CUmemPoolProps, maxSize);
SAME_FIELD(PoolProps, usage, CUmemPoolProps, usage);

SAME_TYPE(Uuid, CUuuid);
SAME_FIELD(Uuid, bytes, CUuuid, bytes);

// --- Values
// -----------------------------------------------------------------------------------------------------------

#define SAME_VALUE(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))

SAME_VALUE(kSuccess, CUDA_SUCCESS);
SAME_VALUE(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME_VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME_VALUE(kDeinitialized, CUDA_ERROR_DEINITIALIZED);
SAME_VALUE(kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
SAME_VALUE(kCallRequiresNewerDriver, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
SAME_VALUE(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME_VALUE(kNoDevice, CUDA_ERROR_NO_DEVICE);
SAME_VALUE(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME_VALUE(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME_VALUE(kPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
SAME_VALUE(kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
SAME_VALUE(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME_VALUE(kIllegalState, CUDA_ERROR_ILLEGAL_STATE);
SAME_VALUE(kLossyQuery, CUDA_ERROR_LOSSY_QUERY);
SAME_VALUE(kNotFound, CUDA_ERROR_NOT_FOUND);
SAME_VALUE(kNotReady, CUDA_ERROR_NOT_READY);
SAME_VALUE(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_VALUE(kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME_VALUE(kPeerAccessNotEnabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SAME_VALUE(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME_VALUE(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
SAME_VALUE(kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
SAME_VALUE(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
SAME_VALUE(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME_VALUE(kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME_VALUE(kStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME_VALUE(kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME_VALUE(kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT);
SAME_VALUE(kUnknown, CUDA_ERROR_UNKNOWN);

// The numbers that IsStickyError knows beyond those.
SAME_VALUE(214, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME_VALUE(702, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME_VALUE(710, CUDA_ERROR_ASSERT);
SAME_VALUE(714, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME_VALUE(715, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME_VALUE(716, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME_VALUE(717, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME_VALUE(718, CUDA_ERROR_INVALID_PC);

SAME_VALUE(kLocationInvalid, CU_MEM_LOCATION_TYPE_INVALID);
SAME_VALUE(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(kLocationHost, CU_MEM_LOCATION_TYPE_HOST);
SAME_VALUE(kLocationHostNuma, CU_MEM_LOCATION_TYPE_HOST_NUMA);
SAME_VALUE(kLocationHostNumaCurrent, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
SAME_VALUE(kAllocationInvalid, CU_MEM_ALLOCATION_TYPE_INVALID);
SAME_VALUE(kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(kHandleNone, CU_MEM_HANDLE_TYPE_NONE);
SAME_VALUE(kHandlePosixFd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_VALUE(kHandleWin32, CU_MEM_HANDLE_TYPE_WIN32);
SAME_VALUE(kHandleWin32Kmt, CU_MEM_HANDLE_TYPE_WIN32_KMT);
SAME_VALUE(kHandleFabric, CU_MEM_HANDLE_TYPE_FABRIC);
SAME_VALUE(kAccessNone, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME_VALUE(kAccessRead, CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME_VALUE(kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_VALUE(kGranularityMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME_VALUE(kGranularityRecommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME_VALUE(kStreamDefault, CU_STREAM_DEFAULT);
SAME_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME_VALUE(kEventDefault, CU_EVENT_DEFAULT);
SAME_VALUE(kEventBlockingSync, CU_EVENT_BLOCKING_SYNC);
SAME_VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(kEventInterprocess, CU_EVENT_INTERPROCESS);
SAME_VALUE(kCaptureNone, CU_STREAM_CAPTURE_STATUS_NONE);
SAME_VALUE(kCaptureActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_VALUE(kCaptureInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME_VALUE(kCaptureGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME_VALUE(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
#if CUDA_VERSION >= 13000
SAME_VALUE(kAllocationManaged, CU_MEM_ALLOCATION_TYPE_MANAGED);
#endif

SAME_VALUE(kAttributeIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME_VALUE(kAttributeUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME_VALUE(kAttributeComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(kAttributeComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(kAttributeVirtualMemoryManagement, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_VALUE(kAttributeHandlePosixFd, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_VALUE(kAttributeGenericCompression, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED);
SAME_VALUE(kAttributeRdmaWithVmm, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME_VALUE(kAttributeMemoryPools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME_VALUE(kAttributeMemPoolHandleTypes, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
SAME_VALUE(kAttributeHandleFabric, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
SAME_VALUE(kAttributeMulticast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);

SAME_VALUE(kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(kPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(kPointerIsLegacyIpcCapable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME_VALUE(kPointerRangeStart, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME_VALUE(kPointerRangeSize, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME_VALUE(kPointerMapped, CU_POINTER_ATTRIBUTE_MAPPED);
SAME_VALUE(kPointerAllowedHandleTypes, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
SAME_VALUE(kPointerIsRdmaCapable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
SAME_VALUE(kPointerAccessFlags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS);
SAME_VALUE(kPointerMappingSize, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME_VALUE(kPointerMappingBase, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);

// --- Entry points
// -----------------------------------------------------------------------------------------------------

// The size of what a pointer points at, or 0 where that is void, incomplete or a function.
template <typename T, typename = void>
struct PointeeSize : std::integral_constant<size_t, 0> {};
template <typename T>
struct PointeeSize<T*, std::enable_if_t<(sizeof(T) > 0) && !std::is_void_v<T>>>
    : std::integral_constant<size_t, sizeof(T)> {};

template <typename Ours, typename Theirs>
inline constexpr bool kSameParameter =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>&& PointeeSize<Ours>::value
                                          == PointeeSize<Theirs>::value;

template <typename Ours, typename Theirs>
struct SameSignature : std::false_type {};
template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
struct SameSignature<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> {
  template <typename O, typename T>
  struct Parameter : std::bool_constant<kSameParameter<O, T>> {};
  // The counts are compared first: two packs of different lengths cannot be expanded together.
  static constexpr bool Compare() {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
      return sizeof(OurResult) == sizeof(TheirResult) && (Parameter<Ours, Theirs>::value && ...);
    } else {
      return false;
    }
  }
  static constexpr bool value = Compare();
};

#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters)                                 \
  static_assert(SameSignature<decltype(Driver::member)::Pointer, decltype(&::symbol)>::value, \
                "signature "                                                                  \
                "of " #symbol);
#include "vmm/driver_entry_points.inc"

}  // namespace
}  // namespace expanse::abi

// The part of the CUDA driver's binary interface that this library calls, declared without cuda.h.
//
// The layouts and numbers are those of CUDA 13.0 on LP64 little-endian Linux; none of them changed since CUDA 10.2.
// Fields that later versions carved out of `reserved` bytes read as zero to older drivers, so a zero-filled struct is
// valid for all. abi_check.cc compares every declaration here with cuda.h wherever a toolkit is present; the
// static_asserts below hold everywhere.

#ifndef EXPANSE_VMM_ABI_H_
#define EXPANSE_VMM_ABI_H_

#include <cstddef>
#include <cstdint>

namespace expanse::abi {

using u64 = unsigned long long;  // NOLINT(google-runtime-int): the driver's own type
using DevicePtr = u64;           // CUdeviceptr
using MemHandle = u64;           // CUmemGenericAllocationHandle
using Device = int;              // CUdevice

using Context = struct ContextOpaque*;
using Stream = struct StreamOpaque*;
using Event = struct EventOpaque*;
using MemPool = struct MemPoolOpaque*;
using Graph = struct GraphOpaque*;
using GraphNode = struct GraphNodeOpaque*;

// CUresult. Any other value may come back too, and is passed on by number.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kCallRequiresNewerDriver = 36,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kPeerAccessUnsupported = 217,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kLossyQuery = 402,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerAccessAlreadyEnabled = 704,
  kPeerAccessNotEnabled = 705,
  kContextIsDestroyed = 709,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureImplicit = 906,
  kCapturedEvent = 907,
  kUnknown = 999,
};

enum LocationType : int {
  kLocationInvalid = 0,
  kLocationDevice = 1,
  kLocationHost = 2,
  kLocationHostNuma = 3,
  kLocationHostNumaCurrent = 4,
};

// CUmemLocation
struct Location {
  int type;
  int id;
};
static_assert(sizeof(Location) == 8);

enum AllocationType : int { kAllocationInvalid = 0, kAllocationPinned = 1, kAllocationManaged = 2 };

enum HandleType : int {
  kHandleNone = 0,
  kHandlePosixFd = 1,
  kHandleWin32 = 2,
  kHandleWin32Kmt = 4,
  kHandleFabric = 8,
};

// CUmemAllocationProp
struct AllocationProp {
  int type;
  int requested_handle_types;
  Location location;
  void* win32_handle_meta_data;
  struct {
    unsigned char compression_type;
    unsigned char gpu_direct_rdma_capable;
    unsigned short usage;  // NOLINT(google-runtime-int): the driver's own type
    unsigned char reserved[4];
  } alloc_flags;
};
static_assert(sizeof(AllocationProp) == 32 && alignof(AllocationProp) == 8);
static_assert(offsetof(AllocationProp, location) == 8 && offsetof(AllocationProp, win32_handle_meta_data) == 16 &&
              offsetof(AllocationProp, alloc_flags) == 24);

enum AccessFlags : int { kAccessNone = 0, kAccessRead = 1, kAccessReadWrite = 3 };

// CUmemAccessDesc
struct AccessDesc {
  Location location;
  int flags;
};
static_assert(sizeof(AccessDesc) == 12 && offsetof(AccessDesc, flags) == 8);

enum Granularity : int { kGranularityMinimum = 0, kGranularityRecommended = 1 };

// CUmemPoolProps
struct PoolProps {
  int alloc_type;
  int handle_types;
  Location location;
  void* win32_security_attributes;
  size_t max_size;
  unsigned short usage;  // NOLINT(google-runtime-int): the driver's own type
  unsigned char reserved[54];
};
static_assert(sizeof(PoolProps) == 88 && offsetof(PoolProps, max_size) == 24 && offsetof(PoolProps, usage) == 32);

// CUuuid
struct Uuid {
  char bytes[16];
};
static_assert(sizeof(Uuid) == 16);

enum StreamFlags : unsigned { kStreamDefault = 0, kStreamNonBlocking = 1 };
enum EventFlags : unsigned {
  kEventDefault = 0,
  kEventBlockingSync = 1,
  kEventDisableTiming = 2,
  kEventInterprocess = 4
};
enum CaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };
enum CaptureMode : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };

// The device attributes that this library asks for (CUdevice_attribute).
enum DeviceAttribute : int {
  kAttributeIntegrated = 18,
  kAttributeUnifiedAddressing = 41,
  kAttributeComputeCapabilityMajor = 75,
  kAttributeComputeCapabilityMinor = 76,
  kAttributeVirtualMemoryManagement = 102,
  kAttributeHandlePosixFd = 103,
  kAttributeGenericCompression = 107,
  kAttributeRdmaWithVmm = 110,
  kAttributeMemoryPools = 115,
  kAttributeMemPoolHandleTypes = 119,
  kAttributeHandleFabric = 128,
  kAttributeMulticast = 132,
};

// CUpointer_attribute, as far as asked for.
enum PointerAttribute : int {
  kPointerMemoryType = 2,
  kPointerDeviceOrdinal = 9,
  kPointerIsLegacyIpcCapable = 10,
  kPointerRangeStart = 11,
  kPointerRangeSize = 12,
  kPointerMapped = 13,
  kPointerAllowedHandleTypes = 14,
  kPointerIsRdmaCapable = 15,
  kPointerAccessFlags = 16,
  kPointerMappingSize = 18,
  kPointerMappingBase = 19,
};

}  // namespace expanse::abi

#endif  // EXPANSE_VMM_ABI_H_

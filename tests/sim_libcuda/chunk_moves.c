/* A program that knows the CUDA driver API alone: it is linked with -lcuda and runs on whichever driver it is given.
 *
 * It maps two chunks side by side, fills them, moves the first one to another address, and reads both back. */

#include "driver_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void Check(CUresult result, const char* call) {
  const char* name = NULL;
  if (result == CUDA_SUCCESS) return;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "an unknown error";
  fprintf(stderr, "%s failed: %s (%d)\n", call, name, (int)result);
  exit(1);
}
#define CHECK(call) Check(call, #call)

static void Expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "expected %s\n", what);
  exit(1);
}
#define EXPECT(condition) Expect(condition, #condition)

static void MapReadWrite(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle chunk, CUdevice device) {
  CUmemAccessDesc access;
  memset(&access, 0, sizeof access);
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(cuMemMap(at, size, 0, chunk, 0));
  CHECK(cuMemSetAccess(at, size, &access, 1));
}

int main(void) {
  CUdevice device;
  CUcontext context;
  CUmemAllocationProp prop;
  CUmemGenericAllocationHandle first, second;
  CUdeviceptr base = 0;
  size_t chunk = 0, i;
  unsigned char *written, *read;
  void* host = NULL;

  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxPushCurrent(context));

  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  CHECK(cuMemGetAllocationGranularity(&chunk, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT(chunk > 0);

  CHECK(cuMemAddressReserve(&base, 4 * chunk, 0, 0, 0));
  CHECK(cuMemCreate(&first, chunk, &prop, 0));
  CHECK(cuMemCreate(&second, chunk, &prop, 0));
  MapReadWrite(base, chunk, first, device);
  MapReadWrite(base + chunk, chunk, second, device);

  written = malloc(2 * chunk);
  read = malloc(2 * chunk);
  EXPECT(written != NULL && read != NULL);
  for (i = 0; i < 2 * chunk; ++i) written[i] = (unsigned char)(i * 7 + i / 4093);
  CHECK(cuMemcpyHtoD(base, written, 2 * chunk));
  CHECK(cuMemcpyDtoH(read, base, 2 * chunk));
  EXPECT(memcmp(read, written, 2 * chunk) == 0);

  /* The first chunk moves behind a gap; its contents go with it, and the address it had is memory no more. */
  CHECK(cuMemUnmap(base, chunk));
  MapReadWrite(base + 3 * chunk, chunk, first, device);
  EXPECT(cuMemcpyDtoH(read, base, chunk) != CUDA_SUCCESS);
  memset(read, 0, 2 * chunk);
  CHECK(cuMemcpyDtoH(read, base + 3 * chunk, chunk));
  CHECK(cuMemcpyDtoH(read + chunk, base + chunk, chunk));
  EXPECT(memcmp(read, written, 2 * chunk) == 0);

  /* The mapping keeps the memory alive when the handle is gone. */
  CHECK(cuMemRelease(first));
  memset(read, 0, chunk);
  CHECK(cuMemcpyDtoH(read, base + 3 * chunk, chunk));
  EXPECT(memcmp(read, written, chunk) == 0);

  EXPECT(cuMemMap(base, chunk, 0, first, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemHostAlloc(&host, chunk, 0) == CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(cuMemHostAlloc(&host, chunk, 0) == CUDA_ERROR_NOT_SUPPORTED);

  CHECK(cuMemUnmap(base + 3 * chunk, chunk));
  CHECK(cuMemUnmap(base + chunk, chunk));
  CHECK(cuMemRelease(second));
  CHECK(cuMemAddressFree(base, 4 * chunk));
  CHECK(cuCtxPopCurrent(&context));
  CHECK(cuDevicePrimaryCtxRelease(device));
  free(written);
  free(read);
  printf("moved a chunk of %lu bytes\n", (unsigned long)chunk);
  fflush(stdout);
  return 0;
}

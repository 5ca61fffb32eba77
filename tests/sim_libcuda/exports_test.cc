// The simulated libcuda.so.1 as a library: what it exports, and that the driver loader takes it for a driver.

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse {
namespace {

using GetProcAddress = abi::Result (*)(const char*, void**, int, abi::u64);
using GetProcAddressV2 = abi::Result (*)(const char*, void**, int, abi::u64, int*);

constexpr int kFound = 0;
constexpr int kSymbolNotFound = 1;
constexpr int kVersionNotSufficient = 2;

class SimulatedLibcuda : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(setenv("EXPANSE_SIM", "devices=2,memory=64MiB", /*overwrite=*/1), 0);
    library_ = dlopen(EXPANSE_SIM_LIBCUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  static void* Symbol(const std::string& name) { return dlsym(library_, name.c_str()); }
  static std::string BaseName(const std::string& symbol) { return symbol.substr(0, symbol.rfind("_v")); }

  // What cuGetProcAddress_v2 finds.
  struct Lookup {
    abi::Result result;
    void* function;
    int status;
  };
  static Lookup Look(const std::string& name, int version, abi::u64 flags = 0) {
    Lookup lookup{abi::kSuccess, nullptr, -1};
    const auto get = reinterpret_cast<GetProcAddressV2>(Symbol("cuGetProcAddress_v2"));
    lookup.result = get(name.c_str(), &lookup.function, version, flags, &lookup.status);
    return lookup;
  }

  static void* library_;
};
void* SimulatedLibcuda::library_ = nullptr;

TEST_F(SimulatedLibcuda, IsLoadedAsADriver) {
  const absl::StatusOr<Driver> driver = LoadCudaDriver(EXPANSE_SIM_LIBCUDA);
  ASSERT_TRUE(driver.ok()) << driver.status();
  int devices = 0;
  EXPECT_EQ(driver->device_get_count(&devices), abi::kSuccess);
  EXPECT_EQ(devices, 2);
  size_t bytes = 0;
  EXPECT_EQ(driver->device_total_mem(&bytes, 1), abi::kSuccess);
  EXPECT_EQ(bytes, MiB(64).count());
}

TEST_F(SimulatedLibcuda, ExportsEveryEntryPoint) {
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) EXPECT_NE(Symbol(#symbol), nullptr) << #symbol;
#include "vmm/driver_entry_points.inc"
}

TEST_F(SimulatedLibcuda, ExportsNoOlderAbi) {
  // The bare names are of another, incompatible ABI: better that a program does not link than that it corrupts memory.
  for (const char* name : {"cuMemAlloc", "cuMemFree", "cuMemGetInfo", "cuDeviceTotalMem", "cuCtxPushCurrent",
                           "cuStreamDestroy", "cuEventDestroy", "cuMemcpyHtoD", "cuStreamGetCaptureInfo"}) {
    EXPECT_EQ(Symbol(name), nullptr) << name;
  }
}

TEST_F(SimulatedLibcuda, ProcAddressFindsEveryEntryPointByItsBaseName) {
  std::map<std::string, void*> symbols;
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) symbols[#symbol] = Symbol(#symbol);
#include "vmm/driver_entry_points.inc"
  for (const auto& [symbol, function] : symbols) {
    const Lookup lookup = Look(BaseName(symbol), symbol == "cuStreamGetCaptureInfo_v2" ? 11030 : 12000);
    EXPECT_EQ(lookup.result, abi::kSuccess) << symbol;
    EXPECT_EQ(lookup.status, kFound) << symbol;
    EXPECT_EQ(lookup.function, function) << symbol;
  }
}

TEST_F(SimulatedLibcuda, ProcAddressKnowsVersions) {
  EXPECT_EQ(Look("cuMemCreate", 10010).status, kVersionNotSufficient);
  EXPECT_EQ(Look("cuMemCreate", 10010).function, nullptr);
  EXPECT_EQ(Look("cuMemCreate", 10010).result, abi::kSuccess);
  EXPECT_EQ(Look("cuMemCreate", 10020).status, kFound);
  EXPECT_EQ(Look("cuMemAlloc", 2000).status, kVersionNotSufficient) << "the 32-bit ABI";
  EXPECT_EQ(Look("cuMemCreate", 99990).result, abi::kInvalidValue) << "newer than the driver";
  EXPECT_EQ(Look("cuCtxSynchronize", 13000).status, kSymbolNotFound) << "13.0 gave the name other parameters";
  EXPECT_EQ(Look("cuStreamGetCaptureInfo", 12030).function, Symbol("cuStreamGetCaptureInfo_v3"));
}

TEST_F(SimulatedLibcuda, ProcAddressOfTheUnknown) {
  const Lookup lookup = Look("cuMakeCoffee", 12000);
  EXPECT_EQ(lookup.result, abi::kSuccess);
  EXPECT_EQ(lookup.function, nullptr);
  EXPECT_EQ(lookup.status, kSymbolNotFound);
  EXPECT_EQ(Look("cuMemAlloc_v2", 12000).status, kSymbolNotFound) << "names are given without suffix";

  void* function = this;
  const auto first = reinterpret_cast<GetProcAddress>(Symbol("cuGetProcAddress"));
  EXPECT_EQ(first("cuMakeCoffee", &function, 11030, 0), abi::kNotFound);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(first("cuMemMap", &function, 11030, 0), abi::kSuccess);
  EXPECT_EQ(function, Symbol("cuMemMap"));
  EXPECT_EQ(first(nullptr, &function, 11030, 0), abi::kInvalidValue);
  EXPECT_EQ(first("cuMemMap", nullptr, 11030, 0), abi::kInvalidValue);
}

TEST_F(SimulatedLibcuda, ProcAddressHasNoPerThreadVariants) {
  constexpr abi::u64 kLegacy = 1;
  constexpr abi::u64 kPerThread = 2;
  EXPECT_EQ(Look("cuMemcpyHtoDAsync", 12000, kLegacy).status, kFound);
  EXPECT_EQ(Look("cuMemcpyHtoDAsync", 12000, kPerThread).status, kSymbolNotFound);
  EXPECT_EQ(Look("cuMemcpyHtoD", 12000, kPerThread).status, kSymbolNotFound);
  EXPECT_EQ(Look("cuMemMap", 12000, kPerThread).status, kFound);
  EXPECT_EQ(Look("cuMemMap", 12000, 3).result, abi::kInvalidValue);
}

TEST_F(SimulatedLibcuda, WhatItLacksSaysSoOnce) {
  const auto launch = reinterpret_cast<abi::Result (*)()>(Symbol("cuLaunchKernel"));
  ASSERT_NE(launch, nullptr);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(launch(), abi::kNotSupported);
  EXPECT_EQ(launch(), abi::kNotSupported);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "EXPANSE_SIM: cuLaunchKernel is not supported\n");
  EXPECT_EQ(Look("cuLaunchKernel", 12000).function, Symbol("cuLaunchKernel"));
}

}  // namespace
}  // namespace expanse

#include "vmm/driver.h"

#include <set>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "vmm/driver_call.h"

namespace expanse {
namespace {

// Knows the names of two errors.
Driver DriverWithNames() {
  Driver driver;
  driver.get_error_name = [](abi::Result result, const char** name) {
    *name = result == abi::kOutOfMemory    ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == abi::kInvalidValue ? "CUDA_ERROR_INVALID_VALUE"
                                           : nullptr;
    return *name == nullptr ? abi::kInvalidValue : abi::kSuccess;
  };
  return driver;
}

TEST(Driver, EveryEntryPointHasASymbolOfItsOwn) {
  EXPECT_EQ(SymbolName(EntryPoint::init), "cuInit");
  EXPECT_EQ(SymbolName(EntryPoint::mem_create), "cuMemCreate");
  EXPECT_EQ(SymbolName(EntryPoint::event_synchronize), "cuEventSynchronize");
  std::set<std::string_view> symbols;
  for (int i = 0; i < kEntryPointCount; ++i) symbols.insert(SymbolName(static_cast<EntryPoint>(i)));
  EXPECT_EQ(symbols.size(), static_cast<size_t>(kEntryPointCount));
}

TEST(Driver, StatusNamesTheCallTheErrorAndItsNumber) {
  const absl::Status status = ToStatus(DriverWithNames(), abi::kOutOfMemory, "cuMemCreate(size=2097152, device=0)");
  EXPECT_EQ(status.message(), "cuMemCreate(size=2097152, device=0): CUDA_ERROR_OUT_OF_MEMORY (2)");
}

TEST(Driver, StatusOfAnErrorWithoutANameHasItsNumber) {
  const absl::Status status = ToStatus(DriverWithNames(), static_cast<abi::Result>(12345), "cuInit(flags=0)");
  EXPECT_EQ(status.message(), "cuInit(flags=0): unknown driver error (12345)");
  EXPECT_EQ(ToStatus(Driver(), abi::kUnknown, "cuInit(flags=0)").message(),
            "cuInit(flags=0): unknown driver error (999)");
}

TEST(Driver, StatusCodesAreAsDocumented) {
  const struct {
    int result;
    absl::StatusCode code;
  } cases[] = {
      {0, absl::StatusCode::kOk},
      {1, absl::StatusCode::kInvalidArgument},
      {2, absl::StatusCode::kResourceExhausted},
      {3, absl::StatusCode::kFailedPrecondition},
      {4, absl::StatusCode::kFailedPrecondition},
      {36, absl::StatusCode::kUnimplemented},
      {101, absl::StatusCode::kInvalidArgument},
      {201, absl::StatusCode::kInvalidArgument},
      {304, absl::StatusCode::kInternal},
      {400, absl::StatusCode::kInvalidArgument},
      {600, absl::StatusCode::kUnavailable},
      {700, absl::StatusCode::kInternal},
      {709, absl::StatusCode::kFailedPrecondition},
      {719, absl::StatusCode::kInternal},
      {800, absl::StatusCode::kPermissionDenied},
      {801, absl::StatusCode::kUnimplemented},
      {999, absl::StatusCode::kInternal},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ToStatus(Driver(), static_cast<abi::Result>(c.result), "call").code(), c.code) << c.result;
  }
}

TEST(Driver, OnlyErrorsThatEndTheContextAreSticky) {
  for (const int result : {214, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719}) {
    EXPECT_TRUE(IsStickyError(static_cast<abi::Result>(result))) << result;
  }
  for (const int result : {0, 1, 2, 3, 4, 101, 201, 400, 600, 701, 709, 720, 800, 801, 900, 999}) {
    EXPECT_FALSE(IsStickyError(static_cast<abi::Result>(result))) << result;
  }
}

TEST(DriverCall, ArgumentsGoBetweenTheParentheses) {
  const Driver driver = DriverWithNames();
  EXPECT_TRUE(CallStatus(driver, abi::kSuccess, EntryPoint::mem_unmap, "address=", 1).ok());
  const absl::Status status =
      CallStatus(driver, abi::kInvalidValue, EntryPoint::mem_unmap, "address=0x", absl::Hex(0x1000), ", size=", 7);
  EXPECT_EQ(status.message(), "cuMemUnmap(address=0x1000, size=7): CUDA_ERROR_INVALID_VALUE (1)");
}

}  // namespace
}  // namespace expanse

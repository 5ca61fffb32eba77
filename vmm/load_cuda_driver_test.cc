// LoadCudaDriver against libraries built for it, the simulator's and, where there is a toolkit, the toolkit's stub.
// Their paths come from the build.

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/driver.h"

namespace expanse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Message(const absl::StatusOr<Driver>& driver) { return std::string(driver.status().message()); }

TEST(LoadCudaDriver, MissingLibraryIsUnavailableAndNamed) {
  const absl::StatusOr<Driver> driver = LoadCudaDriver("libdoes-not-exist.so.1");
  EXPECT_TRUE(absl::IsUnavailable(driver.status()));
  EXPECT_THAT(Message(driver), HasSubstr("libdoes-not-exist.so.1"));
}

TEST(LoadCudaDriver, MissingRequiredSymbolsAreNamed) {
  const absl::StatusOr<Driver> driver = LoadCudaDriver(EXPANSE_FAKE_LIBCUDA_INCOMPLETE);
  EXPECT_TRUE(absl::IsUnavailable(driver.status()));
  EXPECT_THAT(Message(driver), AllOf(HasSubstr("lacks cuMemUnmap, cuMemSetAccess"), Not(HasSubstr("cuMemAllocAsync"))));
}

TEST(LoadCudaDriver, MissingOptionalSymbolIsNull) {
  const absl::StatusOr<Driver> driver = LoadCudaDriver(EXPANSE_FAKE_LIBCUDA_OLD);
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_EQ(driver->mem_alloc_async, nullptr);
  EXPECT_EQ(driver->stream_get_id, nullptr);
  EXPECT_NE(driver->mem_create, nullptr);
  EXPECT_NE(driver->mem_free_async, nullptr);
}

TEST(LoadCudaDriver, StubIsUnavailable) {
  const absl::StatusOr<Driver> driver = LoadCudaDriver(EXPANSE_FAKE_LIBCUDA_STUB);
  EXPECT_TRUE(absl::IsUnavailable(driver.status()));
  EXPECT_THAT(Message(driver), AllOf(HasSubstr("stub"), HasSubstr("(34)")));
}

TEST(LoadCudaDriver, FailureToInitialiseIsUnavailable) {
  const absl::StatusOr<Driver> driver = LoadCudaDriver(EXPANSE_FAKE_LIBCUDA_NO_DEVICE);
  EXPECT_TRUE(absl::IsUnavailable(driver.status()));
  EXPECT_THAT(Message(driver), AllOf(HasSubstr("cuInit"), HasSubstr("(100)")));
}

TEST(LoadCudaDriver, ToolkitsStubIsUnavailable) {
  const std::string stub = EXPANSE_TOOLKIT_STUB;
  if (stub.empty() || !std::ifstream(stub)) GTEST_SKIP() << "no CUDA toolkit with a stub library here";
  const absl::StatusOr<Driver> driver = LoadCudaDriver(stub);
  EXPECT_TRUE(absl::IsUnavailable(driver.status()));
  EXPECT_THAT(Message(driver), HasSubstr("stub"));
}

}  // namespace
}  // namespace expanse

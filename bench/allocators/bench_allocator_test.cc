#include "bench/allocators/bench_allocator.h"

#include <string>

#include "bench/allocators/rival_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

class BenchAllocatorTest : public RivalTest {
 protected:
  void SetUp() override { SetUpDevice(MiB(256)); }
};

TEST_F(BenchAllocatorTest, EveryListedNameCreatesAnAllocator) {
  EXPECT_THAT(BenchAllocatorNames(),
              testing::ElementsAre("expanse", "naive", "caching", "preallocated", "per-stream-segments"));
  for (std::string_view name : BenchAllocatorNames()) {
    SCOPED_TRACE(std::string(name));
    SetUpAllocator(name);
    allocator_.reset();
  }
}

TEST_F(BenchAllocatorTest, AnUnknownNameListsTheKnownOnes) {
  const absl::Status status = CreateBenchAllocator("buddy", driver(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  for (std::string_view name : BenchAllocatorNames()) {
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(std::string(name)));
  }
}

TEST_F(BenchAllocatorTest, TheDriversOwnPoolsAreNamedAsMissing) {
  EXPECT_EQ(CreateBenchAllocator("driver-pool", driver(), {}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(BenchAllocatorTest, ADeviceThatIsNotThereIsAnError) {
  BenchAllocatorOptions options;
  options.device = DeviceOrdinal(7);
  for (std::string_view name : BenchAllocatorNames()) {
    EXPECT_FALSE(CreateBenchAllocator(name, driver(), options).ok()) << std::string(name);
  }
}

}  // namespace
}  // namespace expanse::bench

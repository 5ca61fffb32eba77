// What a caller is told who asks for what cannot be, and in a forked process.

#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <string>

#include "core/allocator_fixture.h"
#include "core/budget.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;

TEST_F(AllocatorTest, OnlyLiveBlocksCanBeFreed) {
  Start();
  const DeviceAddress a = Alloc(MiB(4));
  const DeviceAddress b = Alloc(MiB(4));
  Free(b);
  const auto refusal = [&](DeviceAddress address) {
    const absl::Status status = allocator_->Free(address);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(allocator_->RecordUse(address, StreamHandle()).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(ToString(address)));
    Check();
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(DeviceAddress()), HasSubstr("null"));
  EXPECT_THAT(refusal(DeviceAddress(0x1234)), HasSubstr("not in any range"));
  EXPECT_THAT(refusal(a + Bytes(512)), HasSubstr("inside a live block"));
  EXPECT_THAT(refusal(b), HasSubstr("free memory"));
  EXPECT_THAT(refusal(a + MiB(16)), HasSubstr("nothing is mapped"));
  EXPECT_EQ(stats().live.current, MiB(4));
}

TEST_F(AllocatorTest, NonsensicalSizesAreRefusedWithoutADriverCall) {
  Start();
  const uint64_t before = DriverCalls();
  EXPECT_EQ(AllocFails(Bytes()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AllocFails(MiB(64) + Bytes(1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AllocFails(Bytes(~uint64_t{0})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DriverCalls(), before);
  EXPECT_EQ(stats().failed_allocations, 0u);
}

TEST_F(AllocatorTest, NonsensicalOptionsAreNamed) {
  Start();
  const auto message = [&](const AllocatorOptions& options) {
    const auto allocator = Allocator::Create(sim_->driver(), options);
    EXPECT_EQ(allocator.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(allocator.status().message());
  };
  AllocatorOptions options;
  options.chunk_size = MiB(3);
  EXPECT_THAT(message(options), HasSubstr("chunk_size"));
  options.chunk_size = MiB(66);
  EXPECT_THAT(message(options), HasSubstr("chunk_size"));
  options = {};
  options.limit = MiB(1);
  EXPECT_THAT(message(options), HasSubstr("limit"));
  options = {};
  options.address_space_multiple = 0;
  EXPECT_THAT(message(options), HasSubstr("address_space_multiple"));
}

TEST_F(AllocatorTest, AnEnormousMultipleReservesWhatTheBudgetHas) {
  AllocatorOptions options;
  options.address_space_multiple = std::numeric_limits<int>::max();
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = GiB(80);
  Start(config, options);
  EXPECT_GE(stats().address_space.current, GiB(80));
  EXPECT_LE(stats().address_space.current, kAddressBudget);
}

TEST_F(AllocatorTest, AForkedChildIsToldSoAndTouchesNothing) {
  Start();
  const DeviceAddress a = Alloc(MiB(2));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool refused =
        allocator_->Allocate(MiB(2), StreamHandle()).status().code() == absl::StatusCode::kFailedPrecondition;
    const bool ignored = allocator_->Free(a).ok();
    allocator_.reset();
    _exit(refused && ignored ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(stats().live_blocks, 1u);
  Free(a);
}

}  // namespace
}  // namespace expanse

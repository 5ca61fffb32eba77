// What the tests of the rival allocators share.

#ifndef EXPANSE_BENCH_ALLOCATORS_RIVAL_TEST_SUPPORT_H_
#define EXPANSE_BENCH_ALLOCATORS_RIVAL_TEST_SUPPORT_H_

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/allocators/bench_allocator.h"
#include "gtest/gtest.h"
#include "vmm/driver.h"
#include "vmm/sim/config.h"
#include "vmm/sim/simulator.h"
#include "vmm/units.h"

namespace expanse::bench {

// A simulated device that keeps books only, and one allocator on it. At the end, and in between by Check, the allocator
// must be consistent; once it is gone the driver must have everything back.
class RivalTest : public testing::Test {
 protected:
  // The memory of the device.
  void SetUpDevice(Bytes memory) {
    sim::Config config;
    config.devices[0].total_memory = memory;
    config.memory = sim::MemoryMode::kAccounting;
    auto simulator = sim::Simulator::Create(config);
    ASSERT_TRUE(simulator.ok()) << simulator.status();
    simulator_ = *std::move(simulator);
    ASSERT_EQ(driver().init(0), abi::kSuccess);
    abi::Context context = nullptr;
    ASSERT_EQ(driver().primary_ctx_retain(&context, 0), abi::kSuccess);
    ASSERT_EQ(driver().ctx_set_current(context), abi::kSuccess);
  }

  void SetUpAllocator(std::string_view name, BenchAllocatorOptions options = {}) {
    auto allocator = CreateBenchAllocator(name, driver(), options);
    ASSERT_TRUE(allocator.ok()) << allocator.status();
    allocator_ = *std::move(allocator);
  }

  void TearDown() override {
    if (simulator_ == nullptr) return;
    if (allocator_ != nullptr) Check();
    allocator_.reset();
    for (StreamHandle stream : streams_) {
      EXPECT_EQ(driver().stream_destroy(static_cast<abi::Stream>(stream.raw())), abi::kSuccess);
    }
    EXPECT_EQ(driver().primary_ctx_release(0), abi::kSuccess);
    EXPECT_TRUE(simulator_->ledger().Balanced()) << simulator_->ledger().ToString();
    EXPECT_EQ(simulator_->hazard_count(), 0);
  }

  StreamHandle NewStream() {
    abi::Stream stream = nullptr;
    EXPECT_EQ(driver().stream_create(&stream, abi::kStreamNonBlocking), abi::kSuccess);
    streams_.emplace_back(stream);
    return streams_.back();
  }

  // Null if it fails, which the test then sees.
  DeviceAddress Allocate(Bytes size, StreamHandle stream = StreamHandle()) {
    auto address = allocator_->Allocate(size, stream);
    EXPECT_TRUE(address.ok()) << address.status();
    Check();
    return address.value_or(DeviceAddress());
  }
  void ExpectOutOfMemory(Bytes size, StreamHandle stream = StreamHandle()) {
    auto address = allocator_->Allocate(size, stream);
    EXPECT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
    Check();
  }
  void Free(DeviceAddress address, StreamHandle stream = StreamHandle()) {
    EXPECT_TRUE(allocator_->Free(address, stream).ok());
    Check();
  }
  void Check() { EXPECT_TRUE(allocator_->CheckInvariants().ok()) << allocator_->CheckInvariants(); }

  // Work on a stream that takes so long, and touches the block.
  void Work(StreamHandle stream, DeviceAddress address, Bytes size, std::chrono::microseconds duration) {
    const sim::Access access{{address, size}, true};
    EXPECT_EQ(simulator_->Launch(stream, duration, {&access, 1}), abi::kSuccess);
  }

  [[nodiscard]] const Driver& driver() const { return simulator_->driver(); }
  [[nodiscard]] uint64_t Calls(EntryPoint entry_point) const {
    return simulator_->counters().calls[static_cast<int>(entry_point)];
  }
  [[nodiscard]] Bytes Reserved() const { return allocator_->figures().reserved; }

  std::unique_ptr<sim::Simulator> simulator_;
  std::unique_ptr<BenchAllocator> allocator_;
  std::vector<StreamHandle> streams_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_RIVAL_TEST_SUPPORT_H_

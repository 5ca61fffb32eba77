// For tests through the public interface: a simulator and an allocator on it, both checked after every operation.

#ifndef EXPANSE_CORE_ALLOCATOR_FIXTURE_H_
#define EXPANSE_CORE_ALLOCATOR_FIXTURE_H_

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "core/allocator.h"
#include "core/options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/sim/simulator.h"

namespace expanse {

class AllocatorTest : public ::testing::Test {
 protected:
  static constexpr Bytes kChunk = MiB(2);

  // A device of 64 MiB on which calls cost nothing and no memory is behind the addresses.
  static sim::Config SmallDevice() {
    sim::Config config;
    config.devices[0].total_memory = MiB(64);
    config.memory = sim::MemoryMode::kAccounting;
    config.costs = sim::CostModel::Free();
    return config;
  }
  static sim::Config SmallRealDevice() {
    sim::Config config = SmallDevice();
    config.memory = sim::MemoryMode::kReal;
    return config;
  }

  void Start(const sim::Config& config = SmallDevice(), const AllocatorOptions& options = {}) {
    auto simulator = sim::Simulator::Create(config);
    ASSERT_TRUE(simulator.ok()) << simulator.status();
    sim_ = *std::move(simulator);
    ASSERT_EQ(sim_->driver().init(0), abi::kSuccess);
    ASSERT_EQ(sim_->driver().primary_ctx_retain(&context_, 0), abi::kSuccess);
    ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
    auto allocator = Allocator::Create(sim_->driver(), options);
    ASSERT_TRUE(allocator.ok()) << allocator.status();
    allocator_ = *std::move(allocator);
  }

  void TearDown() override {
    if (sim_ == nullptr) return;
    allocator_.reset();
    for (StreamHandle stream : streams_) {
      (void)sim_->driver().stream_destroy(static_cast<abi::Stream>(stream.raw()));
    }
    EXPECT_EQ(sim_->driver().primary_ctx_release(0), abi::kSuccess);
    for (const sim::Hazard& hazard : sim_->hazards()) ADD_FAILURE() << hazard.description;
    EXPECT_TRUE(sim_->ledger().Balanced()) << sim_->ledger().ToString();
    EXPECT_EQ(sim_->CheckInvariants(), absl::OkStatus());
  }

  StreamHandle NewStream() {
    abi::Stream raw = nullptr;
    EXPECT_EQ(sim_->driver().stream_create(&raw, abi::kStreamNonBlocking), abi::kSuccess);
    streams_.emplace_back(raw);
    return streams_.back();
  }
  void DestroyStream(StreamHandle stream) {
    EXPECT_EQ(sim_->driver().stream_destroy(static_cast<abi::Stream>(stream.raw())), abi::kSuccess);
    streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
  }

  void Check() {
    const absl::Status status = allocator_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
  }
  DeviceAddress Alloc(Bytes size, StreamHandle stream = StreamHandle()) {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream);
    EXPECT_TRUE(address.ok()) << address.status();
    Check();
    return address.value_or(DeviceAddress());
  }
  absl::Status AllocFails(Bytes size, StreamHandle stream = StreamHandle()) {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream);
    EXPECT_FALSE(address.ok());
    Check();
    return address.status();
  }
  void Free(DeviceAddress address) {
    EXPECT_EQ(allocator_->Free(address), absl::OkStatus());
    Check();
  }
  void Free(DeviceAddress address, StreamHandle stream) {
    EXPECT_EQ(allocator_->Free(address, stream), absl::OkStatus());
    Check();
  }
  void RecordUse(DeviceAddress address, StreamHandle stream) {
    EXPECT_EQ(allocator_->RecordUse(address, stream), absl::OkStatus());
    Check();
  }
  // Queues work on a stream that writes the range.
  void Launch(StreamHandle stream, std::chrono::microseconds duration, DeviceAddress address, Bytes size) {
    EXPECT_EQ(sim_->Launch(stream, duration, {sim::Access{{address, size}, true}}), abi::kSuccess);
  }
  // What `later` is given from now on comes after what `earlier` was given so far.
  void OrderAfter(StreamHandle later, StreamHandle earlier) {
    if (later == earlier) return;
    const Driver& driver = sim_->driver();
    abi::Event event = nullptr;
    ASSERT_EQ(driver.event_create(&event, abi::kEventDisableTiming), abi::kSuccess);
    ASSERT_EQ(driver.event_record(event, static_cast<abi::Stream>(earlier.raw())), abi::kSuccess);
    ASSERT_EQ(driver.stream_wait_event(static_cast<abi::Stream>(later.raw()), event, 0), abi::kSuccess);
    ASSERT_EQ(driver.event_destroy(event), abi::kSuccess);
  }
  uint64_t DriverCalls() const { return sim_->counters().TotalCalls(); }
  uint64_t Calls(EntryPoint entry_point) const { return sim_->counters().calls[static_cast<int>(entry_point)]; }
  Stats stats() const { return allocator_->GetStats(); }

  std::unique_ptr<sim::Simulator> sim_;
  std::unique_ptr<Allocator> allocator_;
  abi::Context context_ = nullptr;
  std::vector<StreamHandle> streams_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_ALLOCATOR_FIXTURE_H_

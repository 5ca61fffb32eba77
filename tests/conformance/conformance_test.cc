#include "tests/conformance/conformance_test.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace expanse {

void ConformanceTest::SetUp() {
  auto device = ConformanceDevice::Open(device_name());
  ASSERT_TRUE(device.ok()) << device.status();
  device_ = *std::move(device);
}

void ConformanceTest::TearDown() {
  if (device_ == nullptr) return;
  if (allocator_ != nullptr) Check();
  allocator_.reset();
  if (simulator() != nullptr) {
    for (const sim::Hazard& hazard : simulator()->hazards()) ADD_FAILURE() << hazard.description;
  }
  device_->Close();
  if (simulator() != nullptr) {
    EXPECT_TRUE(simulator()->ledger().Balanced()) << simulator()->ledger().ToString();
  }
}

bench::BenchAllocatorOptions ConformanceTest::Options() {
  bench::BenchAllocatorOptions options;
  options.prealloc = MiB(64);
  return options;
}

void ConformanceTest::Create(const bench::BenchAllocatorOptions& options) {
  auto allocator = bench::CreateBenchAllocator(allocator_name(), device_->driver(), options);
  ASSERT_TRUE(allocator.ok()) << allocator.status();
  allocator_ = *std::move(allocator);
}

AddressRange ConformanceTest::Allocate(Bytes size, StreamHandle stream) {
  auto address = allocator_->Allocate(size, stream);
  EXPECT_TRUE(address.ok()) << address.status();
  if (!address.ok()) return {};
  const AddressRange block{*address, size};
  EXPECT_FALSE(address->is_null());
  EXPECT_EQ(address->value() % alignment(), 0) << ToString(block);
  auto next = live_.lower_bound(address->value());
  if (next != live_.end()) {
    EXPECT_FALSE(block.Overlaps(next->second)) << ToString(block) << ToString(next->second);
  }
  if (next != live_.begin()) {
    EXPECT_FALSE(block.Overlaps(std::prev(next)->second)) << ToString(block);
  }
  if (simulator() != nullptr) {
    EXPECT_TRUE(simulator()->IsMapped(block)) << ToString(block);
  }
  live_[address->value()] = block;
  Check();
  return block;
}

void ConformanceTest::Free(AddressRange block, StreamHandle stream) {
  EXPECT_TRUE(allocator_->Free(block.begin, stream).ok()) << ToString(block);
  live_.erase(block.begin.value());
  Check();
}

void ConformanceTest::ExpectOutOfMemory(Bytes size, StreamHandle stream) {
  auto address = allocator_->Allocate(size, stream);
  EXPECT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
  Check();
}

void ConformanceTest::RecordUse(AddressRange block, StreamHandle stream) {
  EXPECT_TRUE(allocator_->RecordUse(block.begin, stream).ok()) << ToString(block);
}

void ConformanceTest::Check() {
  const absl::Status invariants = allocator_->CheckInvariants();
  EXPECT_TRUE(invariants.ok()) << invariants;
  const bench::AllocatorFigures figures = allocator_->figures();
  Bytes live;
  for (const auto& [address, block] : live_) live += block.size;
  EXPECT_EQ(figures.live, live);
  EXPECT_LE(figures.live, figures.allocated);
  EXPECT_LE(figures.allocated + figures.pending, figures.reserved);
  EXPECT_LE(figures.live, figures.peak_live);
  EXPECT_LE(figures.allocated, figures.peak_allocated);
  EXPECT_LE(figures.pending, figures.peak_pending);
  EXPECT_LE(figures.reserved, figures.peak_reserved);
  if (simulator() != nullptr) {
    EXPECT_EQ(figures.reserved, simulator()->ledger().physical_bytes);
  }
}

void ConformanceTest::Work(StreamHandle stream, AddressRange block, std::chrono::milliseconds duration) {
  const sim::Access access{block, true};
  EXPECT_EQ(simulator()->Launch(stream, duration, {&access, 1}), abi::kSuccess);
}

std::vector<std::string> AllAllocators() {
  std::vector<std::string> names;
  for (std::string_view name : bench::BenchAllocatorNames()) names.emplace_back(name);
  return names;
}

std::string ConformanceName(const testing::TestParamInfo<std::tuple<std::string, std::string>>& info) {
  std::string name = std::get<0>(info.param) + "_on_" + std::get<1>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace expanse

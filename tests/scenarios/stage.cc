#include "tests/scenarios/stage.h"

#include <cstdlib>
#include <utility>

#include "gtest/gtest.h"

namespace expanse::scenarios {
namespace {

abi::Stream Raw(StreamHandle stream) { return static_cast<abi::Stream>(stream.raw()); }

// A stage that cannot be set up leaves nothing that a scenario could go on with.
template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    ADD_FAILURE() << value.status();
    std::abort();
  }
  return *std::move(value);
}

}  // namespace

sim::Config Stage::Device(Bytes memory) {
  sim::Config config;
  config.devices[0].total_memory = memory;
  config.memory = sim::MemoryMode::kAccounting;
  return config;
}

Stage::Stage(std::string_view allocator, Bytes memory)
    : Stage(allocator, Device(memory), bench::BenchAllocatorOptions()) {}

Stage::Stage(std::string_view allocator, const sim::Config& config, const bench::BenchAllocatorOptions& options)
    : simulator_(ValueOrDie(sim::Simulator::Create(config))) {
  abi::Context context = nullptr;
  EXPECT_EQ(driver().init(0), abi::kSuccess);
  EXPECT_EQ(driver().primary_ctx_retain(&context, 0), abi::kSuccess);
  EXPECT_EQ(driver().ctx_set_current(context), abi::kSuccess);
  allocator_ = ValueOrDie(bench::CreateBenchAllocator(allocator, driver(), options));
}

Stage::~Stage() {
  Check();
  allocator_.reset();
  for (const StreamHandle stream : streams_) EXPECT_EQ(driver().stream_destroy(Raw(stream)), abi::kSuccess);
  EXPECT_EQ(driver().primary_ctx_release(0), abi::kSuccess);
  EXPECT_TRUE(simulator_->ledger().Balanced()) << simulator_->ledger().ToString();
  for (const sim::Hazard& hazard : simulator_->hazards()) ADD_FAILURE() << hazard.description;
}

StreamHandle Stage::NewStream() {
  abi::Stream stream = nullptr;
  EXPECT_EQ(driver().stream_create(&stream, abi::kStreamNonBlocking), abi::kSuccess);
  return streams_.emplace_back(stream);
}

void Stage::Work(StreamHandle stream, AddressRange block, std::chrono::microseconds duration) {
  if (block.begin.is_null()) return;
  EXPECT_EQ(simulator_->Launch(stream, duration, {sim::Access{block, /*writes=*/true}}), abi::kSuccess);
}

void Stage::Order(StreamHandle earlier, StreamHandle later) {
  abi::Event event = nullptr;
  EXPECT_EQ(driver().event_create(&event, abi::kEventDisableTiming), abi::kSuccess);
  EXPECT_EQ(driver().event_record(event, Raw(earlier)), abi::kSuccess);
  EXPECT_EQ(driver().stream_wait_event(Raw(later), event, 0), abi::kSuccess);
  EXPECT_EQ(driver().event_destroy(event), abi::kSuccess);
}

AddressRange Stage::Allocate(Bytes size, StreamHandle stream) {
  const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream);
  CheckEach();
  if (address.ok()) return {*address, size};
  EXPECT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
  ++refused_;
  return {};
}

std::vector<AddressRange> Stage::Allocate(int count, Bytes size, StreamHandle stream) {
  std::vector<AddressRange> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(Allocate(size, stream));
  return blocks;
}

void Stage::Free(AddressRange block, StreamHandle stream) {
  if (block.begin.is_null()) return;
  EXPECT_EQ(allocator_->Free(block.begin, stream), absl::OkStatus());
  CheckEach();
}

void Stage::Free(const std::vector<AddressRange>& blocks, StreamHandle stream) {
  for (const AddressRange block : blocks) Free(block, stream);
}

void Stage::RecordUse(AddressRange block, StreamHandle stream) {
  if (block.begin.is_null()) return;
  EXPECT_EQ(allocator_->RecordUse(block.begin, stream), absl::OkStatus());
  CheckEach();
}

double Stage::Overhead() const {
  const bench::AllocatorFigures now = figures();
  return static_cast<double>(now.peak_reserved.count()) / static_cast<double>(now.peak_live.count());
}

void Stage::Check() { EXPECT_EQ(allocator_->CheckInvariants(), absl::OkStatus()); }

}  // namespace expanse::scenarios

#include "tests/conformance/conformance_device.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/memory/memory.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

sim::Config ConfigOf(const std::string& name) {
  sim::Config config;
  config.devices[0].total_memory = MiB(256);
  config.memory = name == "memory" ? sim::MemoryMode::kReal : sim::MemoryMode::kAccounting;
  if (name == "late") config.quirks.release_lag = true;
  if (name == "contrary") {
    sim::Quirks& quirks = config.quirks;
    quirks.offset_map_error = abi::kNotSupported;
    quirks.oversize_map_error = abi::kInvalidValue;
    quirks.unmap_hole_is_partial = true;
    quirks.unmap_across_reservations = true;
    quirks.set_access_subrange = true;
    quirks.address_free_live = true;
    quirks.vmm_needs_context = true;
    quirks.peer_error = abi::kPeerAccessUnsupported;
    quirks.honour_address_hints = false;
    quirks.context_free_calls_see_sticky = false;
    quirks.alloc_zero_succeeds = true;
  }
  return config;
}

abi::Stream Raw(StreamHandle stream) { return static_cast<abi::Stream>(stream.raw()); }

}  // namespace

std::vector<std::string> ConformanceDevice::Names() {
  std::vector<std::string> names = {"books", "memory", "contrary", "late"};
  const char* cuda = std::getenv("EXPANSE_TEST_CUDA");
  if (cuda != nullptr && std::string_view(cuda) == "1") names.push_back("cuda");
  return names;
}

absl::StatusOr<std::unique_ptr<ConformanceDevice>> ConformanceDevice::Open(const std::string& name) {
  auto device = absl::WrapUnique(new ConformanceDevice);
  if (name == "cuda") {
    auto driver = LoadCudaDriver();
    if (!driver.ok()) return driver.status();
    device->driver_ = *driver;
  } else {
    auto simulator = sim::Simulator::Create(ConfigOf(name));
    if (!simulator.ok()) return simulator.status();
    device->simulator_ = *std::move(simulator);
    device->driver_ = device->simulator_->driver();
  }
  const Driver& driver = device->driver_;
  size_t free_bytes = 0;
  size_t total = 0;
  abi::Result result = driver.init(0);
  if (result == abi::kSuccess) result = driver.primary_ctx_retain(&device->context_, 0);
  if (result == abi::kSuccess) result = driver.ctx_set_current(device->context_);
  if (result == abi::kSuccess) result = driver.mem_get_info(&free_bytes, &total);
  if (result != abi::kSuccess) return ToStatus(driver, result, "opening a device to test on");
  device->total_ = Bytes(total);
  // Other processes may use a real device too.
  device->usable_ = device->simulator_ != nullptr ? Bytes(total) : Bytes(free_bytes) / 10 * 9;
  return device;
}

ConformanceDevice::~ConformanceDevice() { Close(); }

void ConformanceDevice::Close() {
  for (StreamHandle stream : streams_) EXPECT_EQ(driver_.stream_destroy(Raw(stream)), abi::kSuccess);
  streams_.clear();
  if (context_ == nullptr) return;
  EXPECT_EQ(driver_.primary_ctx_release(0), abi::kSuccess);
  context_ = nullptr;
}

bool ConformanceDevice::has_contents() const {
  return simulator_ == nullptr || simulator_->config().memory == sim::MemoryMode::kReal;
}

void ConformanceDevice::UseOnThisThread() const { EXPECT_EQ(driver_.ctx_set_current(context_), abi::kSuccess); }

StreamHandle ConformanceDevice::NewStream() {
  abi::Stream stream = nullptr;
  EXPECT_EQ(driver_.stream_create(&stream, abi::kStreamNonBlocking), abi::kSuccess);
  return streams_.emplace_back(stream);
}

void ConformanceDevice::DestroyStream(StreamHandle stream) {
  EXPECT_EQ(driver_.stream_destroy(Raw(stream)), abi::kSuccess);
  streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
}

void ConformanceDevice::Order(StreamHandle earlier, StreamHandle later) const {
  abi::Event event = nullptr;
  EXPECT_EQ(driver_.event_create(&event, abi::kEventDisableTiming), abi::kSuccess);
  EXPECT_EQ(driver_.event_record(event, Raw(earlier)), abi::kSuccess);
  EXPECT_EQ(driver_.stream_wait_event(Raw(later), event, 0), abi::kSuccess);
  EXPECT_EQ(driver_.event_destroy(event), abi::kSuccess);
}

void ConformanceDevice::Synchronize() const { EXPECT_EQ(driver_.ctx_synchronize(), abi::kSuccess); }

void ConformanceDevice::Fill(AddressRange block, unsigned char value, StreamHandle stream) const {
  EXPECT_EQ(driver_.memset_d8_async(block.begin.value(), value, block.size.count(), Raw(stream)), abi::kSuccess)
      << ToString(block);
}

bool ConformanceDevice::Holds(AddressRange block, unsigned char value, StreamHandle stream) const {
  if (!has_contents()) return true;
  std::vector<unsigned char> bytes(block.size.count());
  EXPECT_EQ(driver_.memcpy_dtoh_async(bytes.data(), block.begin.value(), bytes.size(), Raw(stream)), abi::kSuccess)
      << ToString(block);
  EXPECT_EQ(driver_.stream_synchronize(Raw(stream)), abi::kSuccess);
  return std::all_of(bytes.begin(), bytes.end(), [value](unsigned char byte) { return byte == value; });
}

}  // namespace expanse

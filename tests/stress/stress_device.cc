#include "tests/stress/stress_device.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse::stress {
namespace {

abi::Stream Raw(StreamHandle stream) { return static_cast<abi::Stream>(stream.raw()); }

}  // namespace

absl::StatusOr<std::unique_ptr<StressDevice>> StressDevice::Open(Bytes memory, Bytes granularity,
                                                                 sim::MemoryMode mode) {
  sim::Config config;
  config.devices[0].total_memory = memory;
  config.devices[0].granularity = granularity;
  config.memory = mode;
  return Open(config);
}

absl::StatusOr<std::unique_ptr<StressDevice>> StressDevice::Open(const sim::Config& config) {
  absl::StatusOr<std::unique_ptr<sim::Simulator>> simulator = sim::Simulator::Create(config);
  if (!simulator.ok()) return simulator.status();
  std::unique_ptr<StressDevice> device(new StressDevice(*std::move(simulator)));
  const Driver& driver = device->driver();
  absl::Status status = ToStatus(driver, driver.init(0), "cuInit(0)");
  if (!status.ok()) return status;
  status = ToStatus(driver, driver.primary_ctx_retain(&device->context_, 0), "cuDevicePrimaryCtxRetain(0)");
  if (!status.ok()) return status;
  status = device->MakeCurrent();
  if (!status.ok()) return status;
  return device;
}

StressDevice::~StressDevice() { GiveBack(); }

absl::Status StressDevice::MakeCurrent() {
  return ToStatus(driver(), driver().ctx_set_current(context_), "cuCtxSetCurrent");
}

absl::StatusOr<StreamHandle> StressDevice::CreateStream() {
  abi::Stream stream = nullptr;
  const abi::Result result = driver().stream_create(&stream, abi::kStreamNonBlocking);
  if (result != abi::kSuccess) return ToStatus(driver(), result, "cuStreamCreate(non-blocking)");
  return streams_.emplace_back(stream);
}

absl::Status StressDevice::DestroyStream(StreamHandle stream) {
  const auto known = std::find(streams_.begin(), streams_.end(), stream);
  if (known == streams_.end()) return absl::InvalidArgumentError("the stream was not made here");
  streams_.erase(known);
  return ToStatus(driver(), driver().stream_destroy(Raw(stream)), "cuStreamDestroy");
}

absl::Status StressDevice::Order(StreamHandle earlier, StreamHandle later) {
  abi::Event event = nullptr;
  const abi::Result created = driver().event_create(&event, abi::kEventDisableTiming);
  if (created != abi::kSuccess) return ToStatus(driver(), created, "cuEventCreate");
  absl::Status status = ToStatus(driver(), driver().event_record(event, Raw(earlier)), "cuEventRecord");
  status.Update(ToStatus(driver(), driver().stream_wait_event(Raw(later), event, 0), "cuStreamWaitEvent"));
  status.Update(ToStatus(driver(), driver().event_destroy(event), "cuEventDestroy"));
  return status;
}

absl::Status StressDevice::WaitForEverything() {
  return ToStatus(driver(), driver().ctx_synchronize(), "cuCtxSynchronize()");
}

// What the driver answers is not looked at: Close reads its ledger.
void StressDevice::GiveBack() {
  if (context_ == nullptr) return;
  for (const StreamHandle stream : streams_) (void)driver().stream_destroy(Raw(stream));
  streams_.clear();
  (void)driver().ctx_set_current(nullptr);
  (void)driver().primary_ctx_release(0);
  context_ = nullptr;
}

absl::Status StressDevice::Close() {
  GiveBack();
  if (simulator_->hazard_count() > 0) {
    return absl::InternalError(
        absl::StrCat(simulator_->hazard_count(), " hazards; the first: ", simulator_->hazards().front().description));
  }
  const sim::Ledger ledger = simulator_->ledger();
  if (!ledger.Balanced()) return absl::InternalError(absl::StrCat("left with the driver: ", ledger.ToString()));
  return simulator_->CheckInvariants();
}

}  // namespace expanse::stress

#include "bench/replay/replay_device.h"

#include <memory>
#include <numeric>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/replay/cuda_replay_device.h"
#include "bench/replay/simulated_replay_device.h"

namespace expanse::bench {

uint64_t DriverUse::TotalCalls() const { return std::accumulate(calls.begin(), calls.end(), uint64_t{0}); }

absl::StatusOr<std::unique_ptr<ReplayDevice>> ReplayDevice::Open(const Trace& trace, const ReplayOptions& options) {
  if (options.cuda_device.has_value()) return CudaReplayDevice::Open(trace, options);
  return SimulatedReplayDevice::Open(trace, options);
}

absl::Status ReplayDevice::OpenContext(const Driver& driver, const Trace& trace) {
  if (absl::Status s = ToStatus(driver, driver.init(0), "cuInit(0)"); !s.ok()) return s;
  size_t total = 0;
  abi::Result result = driver.device_total_mem(&total, ordinal_.value());
  if (absl::Status s = ToStatus(driver, result, absl::StrCat("cuDeviceTotalMem(device=", ordinal_.value(), ")"));
      !s.ok()) {
    return s;
  }
  total_memory_ = Bytes(total);
  char name[256] = {};
  if (driver.device_get_name(name, sizeof(name) - 1, ordinal_.value()) == abi::kSuccess) name_ = name;
  abi::Context context = nullptr;
  result = driver.primary_ctx_retain(&context, ordinal_.value());
  if (absl::Status s =
          ToStatus(driver, result, absl::StrCat("cuDevicePrimaryCtxRetain(device=", ordinal_.value(), ")"));
      !s.ok()) {
    return s;
  }
  retained_ = true;
  if (absl::Status s = ToStatus(driver, driver.ctx_set_current(context), "cuCtxSetCurrent"); !s.ok()) return s;

  streams_.emplace(0, StreamHandle());
  for (const TraceEvent& event : trace.events) {
    if (event.op == TraceOp::kMark || streams_.contains(event.stream)) continue;
    abi::Stream stream = nullptr;
    result = driver.stream_create(&stream, abi::kStreamNonBlocking);
    if (absl::Status s = ToStatus(driver, result, absl::StrCat("cuStreamCreate for stream ", event.stream)); !s.ok()) {
      return s;
    }
    streams_.emplace(event.stream, StreamHandle(stream));
  }
  return absl::OkStatus();
}

void ReplayDevice::CloseStreams(const Driver& driver) {
  for (const auto& [id, stream] : streams_) {
    if (stream.raw() != nullptr) (void)driver.stream_destroy(static_cast<abi::Stream>(stream.raw()));
  }
  streams_.clear();
}

void ReplayDevice::CloseContext(const Driver& driver) {
  CloseStreams(driver);
  if (retained_) {
    (void)driver.ctx_set_current(nullptr);
    (void)driver.primary_ctx_release(ordinal_.value());
    retained_ = false;
  }
}

}  // namespace expanse::bench

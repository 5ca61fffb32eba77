#include "vmm/scoped_context.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/driver_call.h"

namespace expanse {

absl::StatusOr<ScopedContext> ScopedContext::Enter(const Device& device) {
  const Driver& driver = device.driver();
  absl::Status status = CallStatus(driver, driver.ctx_push_current(device.context()), EntryPoint::ctx_push_current,
                                   "device=", device.ordinal().value());
  if (!status.ok()) return status;
  return ScopedContext(device);
}

ScopedContext::ScopedContext(ScopedContext&& other) noexcept
    : device_(other.device_), entered_(std::exchange(other.entered_, false)) {}

ScopedContext::~ScopedContext() {
  if (!entered_) return;
  abi::Context top = nullptr;
  (void)device_->driver().ctx_pop_current(&top);
}

absl::Status ScopedContext::Leave() {
  entered_ = false;
  abi::Context top = nullptr;
  const Driver& driver = device_->driver();
  absl::Status status = CallStatus(driver, driver.ctx_pop_current(&top), EntryPoint::ctx_pop_current,
                                   "device=", device_->ordinal().value());
  if (!status.ok()) return status;
  if (top != device_->context()) {
    return absl::InternalError("cuCtxPopCurrent_v2 gave another context than the one that was pushed");
  }
  return absl::OkStatus();
}

ScopedRelaxedCapture::ScopedRelaxedCapture(const Driver& driver) : driver_(driver) {
  if (driver_.thread_exchange_stream_capture_mode == nullptr) return;
  exchanged_ = driver_.thread_exchange_stream_capture_mode(&previous_) == abi::kSuccess;
}

ScopedRelaxedCapture::~ScopedRelaxedCapture() {
  if (exchanged_) (void)driver_.thread_exchange_stream_capture_mode(&previous_);
}

}  // namespace expanse

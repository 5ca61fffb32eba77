#include "vmm/event.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "vmm/driver_call.h"

namespace expanse {

absl::StatusOr<Event> Event::Create(const ScopedContext& context) {
  const Driver& driver = context.device().driver();
  abi::Event event = nullptr;
  absl::Status status = CallStatus(driver, driver.event_create(&event, abi::kEventDisableTiming),
                                   EntryPoint::event_create, "device=", context.device().ordinal().value());
  if (!status.ok()) return status;
  return Event(driver, event);
}

Event::~Event() {
  if (!empty()) (void)Insist([&] { return driver_->event_destroy(event_); });
}

Event::Event(Event&& other) noexcept : driver_(other.driver_), event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  // The old event, if any, goes with `other`.
  std::swap(driver_, other.driver_);
  std::swap(event_, other.event_);
  return *this;
}

absl::Status Event::Record(const ScopedContext& context, StreamHandle stream) {
  return CallStatus(*driver_, driver_->event_record(event_, static_cast<abi::Stream>(stream.raw())),
                    EntryPoint::event_record, "stream=0x", absl::Hex(stream.raw()),
                    ", device=", context.device().ordinal().value());
}

absl::StatusOr<bool> Event::Query() const {
  const abi::Result result = driver_->event_query(event_);
  if (result == abi::kSuccess) return true;
  if (result == abi::kNotReady) return false;
  return CallStatus(*driver_, result, EntryPoint::event_query, "event=0x", absl::Hex(event_));
}

absl::Status Event::Synchronize() const {
  return CallStatus(*driver_, driver_->event_synchronize(event_), EntryPoint::event_synchronize, "event=0x",
                    absl::Hex(event_));
}

absl::StatusOr<Event> EventPool::Record(const ScopedContext& context, StreamHandle stream) {
  if (&context.device() != &device_) {
    return absl::InvalidArgumentError(absl::StrCat("the current context is of device ",
                                                   context.device().ordinal().value(), ", expected device ",
                                                   device_.ordinal().value()));
  }
  Event event;
  if (spare_.empty()) {
    absl::StatusOr<Event> created = Event::Create(context);
    if (!created.ok()) return created.status();
    event = std::move(*created);
  } else {
    event = std::move(spare_.back());
    spare_.pop_back();
  }
  absl::Status status = event.Record(context, stream);
  if (!status.ok()) {
    Return(std::move(event));
    return status;
  }
  return event;
}

void EventPool::Return(Event event) {
  if (!event.empty()) spare_.push_back(std::move(event));
}

}  // namespace expanse

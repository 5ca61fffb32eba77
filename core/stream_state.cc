#include "core/stream_state.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/driver_call.h"
#include "vmm/scoped_context.h"

namespace expanse {
namespace {

// std::thread::id may come back after a thread has ended, when that thread's default stream is gone.
uint64_t ThisThread() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace

StreamKey StreamKey::OfThisThread() { return StreamKey{StreamHandle::PerThread().raw(), ThisThread()}; }

std::string ToString(StreamKey key) {
  if (key.is_per_thread()) return absl::StrCat("the default stream of thread ", key.thread);
  if (key.raw == nullptr) return "the legacy default stream";
  return absl::StrCat("stream 0x", absl::Hex(reinterpret_cast<uintptr_t>(key.raw)));
}

void StreamState::Identify(const Device& device) {
  if (identified_ || key_.is_default() || device.driver().stream_get_id == nullptr) return;
  const absl::StatusOr<ScopedContext> context = ScopedContext::Enter(device);
  if (context.ok()) (void)IsSameStream(*context);
}

absl::StatusOr<bool> StreamState::IsSameStream(const ScopedContext& context) {
  const Driver& driver = context.device().driver();
  // Default streams are there for as long as their context or thread.
  if (key_.is_default() || driver.stream_get_id == nullptr) return true;
  identified_ = true;
  abi::u64 id = 0;
  const abi::Result result = driver.stream_get_id(static_cast<abi::Stream>(key_.raw), &id);
  if (result == abi::kInvalidHandle) {
    id_.reset();
    return false;
  }
  if (result != abi::kSuccess) {
    return CallStatus(driver, result, EntryPoint::stream_get_id, "stream=0x",
                      absl::Hex(reinterpret_cast<uintptr_t>(key_.raw)));
  }
  return std::exchange(id_, id).value_or(id) == id;
}

absl::StatusOr<uint64_t> StreamState::Close(EventPool& events, const Device& device) {
  absl::StatusOr<ScopedContext> context = ScopedContext::Enter(device);
  if (!context.ok()) return context.status();
  const absl::StatusOr<bool> same = IsSameStream(*context);
  if (!same.ok()) return same.status();
  if (!*same) {
    CloseWithoutEvent();
    return last_closed();
  }
  // Another thread's default stream cannot be named here. An event on the legacy default stream comes after all work
  // of the blocking streams, and those default streams are blocking (CUDA driver API, "Stream synchronization
  // behavior").
  const bool elsewhere = key_.is_per_thread() && key_.thread != ThisThread();
  absl::StatusOr<Event> event = events.Record(*context, elsewhere ? StreamHandle() : StreamHandle(key_.raw));
  if (!event.ok()) {
    if (!IsGone(device)) return event.status();
    CloseWithoutEvent();
    return last_closed();
  }
  closed_.push_back(Closed{open_, std::make_shared<Event>(*std::move(event))});
  idle_in_epoch_ = 0;
  return open_++;
}

bool StreamState::IsGone(const Device& device) const {
  if (key_.is_default() || device.driver().stream_get_id != nullptr) return false;
  return device.driver().stream_query(static_cast<abi::Stream>(key_.raw)) == abi::kInvalidHandle;
}

void StreamState::CloseWithoutEvent() {
  if (fence_first_ == 0) fence_first_ = open_;
  fence_last_ = open_;
  idle_in_epoch_ = 0;
  ++open_;
}

absl::Status StreamState::Detach(EventPool& events, const Device& device) {
  const absl::StatusOr<uint64_t> closed = Close(events, device);
  if (!closed.ok()) CloseWithoutEvent();
  detached_ = true;
  return closed.status();
}

absl::Status StreamState::Poll(EventPool& events) {
  while (!closed_.empty() && !(needs_fence() && closed_.front().epoch >= fence_first_)) {
    const absl::StatusOr<bool> done = closed_.front().event->Query();
    if (!done.ok()) return done.status();
    if (!*done) break;
    RetireFirst(events);
  }
  return absl::OkStatus();
}

std::shared_ptr<const Event> StreamState::EventOf(uint64_t epoch) const {
  if (needs_fence() && epoch >= fence_first_) return nullptr;
  for (const Closed& closed : closed_) {
    if (closed.epoch >= epoch) return closed.event;
  }
  return nullptr;
}

void StreamState::CompleteUpTo(uint64_t epoch, EventPool& events) {
  while (!closed_.empty() && closed_.front().epoch <= epoch) RetireFirst(events);
  if (completed_ < epoch) completed_ = epoch;
  if (!needs_fence() || epoch < fence_first_) return;
  const bool all = epoch >= fence_last_;
  fence_first_ = all ? 0 : epoch + 1;
  if (all) fence_last_ = 0;
}

// An event that another thread is waiting for is not recorded again, which would make it wait for later work: whoever
// holds it last destroys it.
void StreamState::RetireFirst(EventPool& events) {
  Closed& first = closed_.front();
  completed_ = first.epoch;
  if (first.event.use_count() == 1) events.Return(std::move(*first.event));
  closed_.pop_front();
}

absl::Status StreamState::CheckInvariants() const {
  if (completed_ >= open_) {
    return absl::InternalError(
        absl::StrCat(ToString(key_), ": epoch ", completed_, " is complete, but ", open_, " is open"));
  }
  uint64_t previous = completed_;
  for (const Closed& closed : closed_) {
    if (closed.epoch <= previous || closed.epoch >= open_ || closed.event == nullptr || closed.event->empty()) {
      return absl::InternalError(
          absl::StrCat(ToString(key_), ": the closed epoch ", closed.epoch, " is out of order or lacks its event"));
    }
    previous = closed.epoch;
  }
  if (std::max(previous, fence_last_) != open_ - 1) {
    return absl::InternalError(
        absl::StrCat(ToString(key_), ": epoch ", open_ - 1, " has no event and is not complete"));
  }
  if (needs_fence() && !(completed_ < fence_first_ && fence_first_ <= fence_last_)) {
    return absl::InternalError(absl::StrCat(ToString(key_), ": epochs ", fence_first_, " to ", fence_last_,
                                            " wait for a fence, and ", completed_, " is complete"));
  }
  return absl::OkStatus();
}

}  // namespace expanse

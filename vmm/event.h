// Finding out from the host how far a stream has come.

#ifndef EXPANSE_VMM_EVENT_H_
#define EXPANSE_VMM_EVENT_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/device.h"
#include "vmm/driver.h"
#include "vmm/scoped_context.h"
#include "vmm/units.h"

namespace expanse {

// Owns one driver event without timing. Movable; an empty one owns nothing. The device must outlive it. Externally
// synchronised.
//
// Query and Synchronize need no current context, because an event knows its own. During a stream capture they count as
// unsafe: hold a ScopedRelaxedCapture, and never ask about an event that was recorded in a capture.
class Event {
 public:
  Event() = default;
  // One driver call.
  [[nodiscard]] static absl::StatusOr<Event> Create(const ScopedContext& context);
  // Destroys the event, which may be pending, insisting once; ignores what the driver answers then.
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  // The event stands for the work that `stream`, of the same context, has been given so far, and no longer for what it
  // stood for before. One driver call; never waits.
  [[nodiscard]] absl::Status Record(const ScopedContext& context, StreamHandle stream);
  // Whether that work is complete; true if nothing was recorded. One driver call; never waits.
  [[nodiscard]] absl::StatusOr<bool> Query() const;
  // Waits until it is. One driver call.
  [[nodiscard]] absl::Status Synchronize() const;

  [[nodiscard]] bool empty() const { return event_ == nullptr; }
  [[nodiscard]] abi::Event raw() const { return event_; }

 private:
  Event(const Driver& driver, abi::Event event) : driver_(&driver), event_(event) {}

  const Driver* driver_ = nullptr;
  abi::Event event_ = nullptr;
};

// Events of one context for repeated use, so that recording costs one driver call once enough of them exist.
// Externally synchronised.
class EventPool {
 public:
  // The device must outlive the pool and its events.
  explicit EventPool(const Device& device) : device_(device) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // Takes an event from the pool, or creates one, and records it. One or two driver calls; never waits.
  // INVALID_ARGUMENT if `context` is another device's. After a failure of the driver the event is back in the pool.
  [[nodiscard]] absl::StatusOr<Event> Record(const ScopedContext& context, StreamHandle stream);
  // Gives an event back, complete or not: the next Record overwrites what it stands for.
  void Return(Event event);

  [[nodiscard]] size_t spare() const { return spare_.size(); }

 private:
  const Device& device_;
  std::vector<Event> spare_;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_EVENT_H_

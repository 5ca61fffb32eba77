// Asks the device, once per attempt and stream, what is complete.

#ifndef EXPANSE_CORE_COMPLETION_H_
#define EXPANSE_CORE_COMPLETION_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "core/stream_state.h"
#include "vmm/device.h"
#include "vmm/event.h"

namespace expanse {

// Made for one attempt to find memory, under the allocator's lock: each stream is polled once, and once more if an
// epoch of it is closed, so that looking at many chunks of a stream that is not done costs one driver call. Asks
// nothing more after the driver refused something.
class CompletionCheck {
 public:
  CompletionCheck(EventPool& events, const Device& device) : events_(events), device_(device) {}

  // Whether the device is known to be done with this epoch. Records an event if the epoch is open, so that a later
  // attempt can tell.
  bool IsComplete(StreamState& stream, uint64_t epoch);

  // The first refusal of the driver; what it concerned counts as not complete.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  EventPool& events_;
  const Device& device_;
  absl::flat_hash_set<const StreamState*> polled_;
  absl::Status status_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_COMPLETION_H_

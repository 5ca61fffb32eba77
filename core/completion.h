// Asks the device, once per attempt and stream, what is complete.

#ifndef EXPANSE_CORE_COMPLETION_H_
#define EXPANSE_CORE_COMPLETION_H_

#include <cstdint>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/stream_state.h"
#include "vmm/device.h"
#include "vmm/event.h"

namespace expanse {

// Made for one attempt to find memory, under the allocator's lock: each stream is polled once, and once more if
// everything was complete then and an epoch was closed since, so that looking at many chunks of a stream that is not
// done costs one driver call. A stream for which the driver refused something is not asked about again; others are.
//
// Invariant: what was answered with false stays incomplete in the books for as long as nobody else polls the stream.
// Otherwise a block or chunk that was passed over could turn out to be complete after the attempt, when nothing would
// be left to wait for and the request would fail.
class CompletionCheck {
 public:
  CompletionCheck(EventPool& events, const Device& device) : events_(events), device_(device) {}

  // Whether the device is known to be done with this epoch. Records an event if the epoch is open, so that a later
  // attempt can tell.
  bool IsComplete(StreamState& stream, uint64_t epoch);

  // The first refusal of the driver; what it concerned counts as not complete.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  static constexpr uint64_t kRefused = std::numeric_limits<uint64_t>::max();

  EventPool& events_;
  const Device& device_;
  // The last epoch of each stream that the driver was asked about, or kRefused.
  absl::flat_hash_map<const StreamState*, uint64_t> asked_;
  absl::Status status_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_COMPLETION_H_

#include "core/completion.h"

namespace expanse {

bool CompletionCheck::IsComplete(StreamState& stream, uint64_t epoch) {
  if (stream.IsComplete(epoch)) return true;
  uint64_t& asked = asked_[&stream];
  if (asked == kRefused) return false;
  absl::Status status;
  if (stream.IsOpen(epoch)) status = stream.Close(events_, device_).status();
  if (status.ok() && stream.IsComplete(asked) && asked < stream.last_closed()) {
    asked = stream.last_closed();
    status = stream.Poll(events_);
  }
  if (!status.ok()) asked = kRefused;
  status_.Update(status);
  return stream.IsComplete(epoch);
}

}  // namespace expanse

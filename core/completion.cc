#include "core/completion.h"

namespace expanse {

bool CompletionCheck::IsComplete(StreamState& stream, uint64_t epoch) {
  if (stream.IsComplete(epoch)) return true;
  if (!status_.ok()) return false;
  const bool closing = stream.IsOpen(epoch);
  if (closing) {
    status_ = stream.Close(events_, device_).status();
    if (!status_.ok()) return false;
  }
  if (polled_.insert(&stream).second || closing) status_ = stream.Poll(events_);
  return stream.IsComplete(epoch);
}

}  // namespace expanse

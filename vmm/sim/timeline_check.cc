// What must hold between the timeline's tables.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "vmm/sim/timeline.h"

namespace expanse::sim {

absl::Status Timeline::CheckInvariants() const {
  if (absl::Status status = races_.CheckInvariants(); !status.ok()) return status;
  if (absl::Status status = pending_.CheckInvariants(); !status.ok()) return status;
  const VirtualTime horizon = std::max(now_, latest_end_);

  size_t listed = 0;
  for (const auto& [context, owner] : contexts_) {
    listed += owner.streams.size();
    for (const StreamId id : owner.streams) {
      const auto it = streams_.find(id);
      if (it == streams_.end() || it->second->info.context != context) {
        return absl::InternalError(absl::StrCat("a context lists stream ", static_cast<uint64_t>(id), ", not its own"));
      }
    }
  }
  if (listed != streams_.size()) {
    return absl::InternalError(absl::StrCat(streams_.size(), " streams, of which contexts list ", listed));
  }
  std::vector<uint32_t> slots;
  for (const auto& [id, stream] : streams_) {
    slots.push_back(stream->slot);
    const uint64_t number = static_cast<uint64_t>(id);
    if (stream->last.end > horizon) return absl::InternalError(absl::StrCat("stream ", number, " ends after all work"));
    if (host_.at(stream->slot) > stream->last.clock.at(stream->slot)) {
      return absl::InternalError(absl::StrCat("the host knows work of stream ", number, " that was never queued"));
    }
    const Epoch last{stream->slot, stream->last.clock.at(stream->slot)};
    if (stream->host_knows_last && (stream->last.end > now_ || !host_.Covers(last))) {
      return absl::InternalError(absl::StrCat("stream ", number, " passes for known to the host, and is not"));
    }
    if (stream->handle == nullptr) continue;
    if (stream_handles_.IsFree(stream->handle)) return absl::InternalError("a free stream handle is in use");
    const auto by_handle = streams_by_handle_.find(stream->handle);
    if (by_handle == streams_by_handle_.end() || by_handle->second != id) {
      return absl::InternalError(absl::StrCat("stream ", number, " is not found by its handle"));
    }
  }
  if (absl::Status status = slots_.CheckInvariants(slots, host_); !status.ok()) return status;
  for (const auto& [handle, event] : events_) {
    if (event_handles_.IsFree(handle)) return absl::InternalError("a free event handle is in use");
    if (!contexts_.contains(event.context)) return absl::InternalError("an event outlived its context");
    if (event.point.end > horizon) return absl::InternalError("an event completes after all work");
  }
  return absl::OkStatus();
}

}  // namespace expanse::sim

// The part of the allocator that learns of streams: which others use a block, and which are gone.

#include <algorithm>
#include <utility>
#include <vector>

#include "core/allocator_impl.h"

namespace expanse {

const std::shared_ptr<StreamState>& Allocator::Impl::Named(StreamHandle handle) {
  const std::shared_ptr<StreamState>& stream = streams_.FindOrAdd(StreamKey::Of(handle));
  stream->Identify(*device_);
  return stream;
}

absl::Status Allocator::Impl::RecordUse(DeviceAddress address, StreamHandle stream) {
  const StallCountingLock lock(mu_, &lock_stalls_);
  const absl::StatusOr<Block*> found = FindLive(address);
  if (!found.ok()) return found.status();
  Block* block = *found;
  const std::shared_ptr<StreamState>& user = Named(stream);
  const std::shared_ptr<StreamState>& own = block->segment->heap()->stream();
  if (recorder_.on()) {
    recorder_.Add({address.value(), block->requested, own->number(), user->number(), SnapshotEventKind::kUse});
  }
  if (user == own) return absl::OkStatus();
  if (block->users == nullptr) block->users = std::make_unique<std::vector<std::shared_ptr<StreamState>>>();
  if (std::find(block->users->begin(), block->users->end(), user) == block->users->end()) block->users->push_back(user);
  return absl::OkStatus();
}

absl::Status Allocator::Impl::OnStreamDestroyed(StreamHandle stream) {
  const StreamKey key = StreamKey::Of(stream);
  MutexLock lock(mu_);
  StreamState* const state = streams_.Find(key);
  if (state == nullptr) return absl::OkStatus();
  const absl::Status status = state->Detach(events_, *device_);
  streams_.Retire(key);
  pools_.Detach(key);
  DropEmptySegments(/*of_live_streams=*/false);
  return status;
}

}  // namespace expanse

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
    recorder_.Add({address.value(), block->requested(), own->number(), user->number(), SnapshotEventKind::kUse});
  }
  if (user == own) return absl::OkStatus();
  Users& users = users_[block];
  if (std::find(users.begin(), users.end(), user) == users.end()) users.push_back(user);
  block->has_users = true;
  return absl::OkStatus();
}

void Allocator::Impl::FreeShared(Block* block, const std::shared_ptr<StreamState>& last) {
  const std::shared_ptr<StreamState>& own = block->segment->heap()->stream();
  Users users;
  if (block->has_users) {
    const auto named = users_.find(block);
    users = std::move(named->second);
    users_.erase(named);
    block->has_users = false;
  }
  if (last != own && std::find(users.begin(), users.end(), last) == users.end()) users.push_back(last);

  PendingBlock pending{block, {}, 0};
  for (std::shared_ptr<StreamState>& user : users) {
    // If the driver will not record an event, the epoch stays open, and whoever needs the memory tries again.
    const uint64_t epoch = user->current_epoch();
    if (!user->detached()) (void)user->Close(events_, *device_);
    if (!user->IsComplete(epoch)) pending.tickets.push_back(Ticket{std::move(user), epoch});
  }
  const bool complete = pending.tickets.empty();
  if (recorder_.on()) {
    NoteFree(*block, last->number(), complete ? SnapshotEventKind::kFree : SnapshotEventKind::kFreePending);
  }
  if (complete) return ReleaseBlock(block);
  pending.number = idle_queue_.NextStamp();
  block->segment->SetPending(block);
  for (FigureCounter* figure : {&pending_, &block->segment->heap()->pool().figures().pending}) figure->Add(block->size);
  pending_queue_.Push(std::move(pending));
  // Driver calls are being made anyway: see what is complete by now, at one query a free beyond those that pay.
  CompletionCheck completion(events_, *device_);
  for (Block* done : pending_queue_.TakeCompleteAtFront(completion)) SettlePending(done);
}

void Allocator::Impl::NoteFree(const Block& block, uint32_t last_stream, SnapshotEventKind kind) {
  const uint32_t own = block.segment->heap()->stream()->number();
  recorder_.Add({block.begin.value(), block.requested(), own, last_stream, kind});
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

// The part of the allocator that runs when no free block fits: growth, reclaim, waiting, and giving up.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/allocator_impl.h"
#include "core/out_of_memory.h"
#include "vmm/driver_call.h"
#include "vmm/scoped_context.h"

namespace expanse {

// The rungs: what other streams have finished with; growth out of spare, created and moved chunks; free blocks of the
// stream's other size classes; then waiting for the oldest work that holds memory back, and again from the start, until
// nothing is left to wait for.
absl::StatusOr<Block*> Allocator::Impl::AllocateSlowly(const Request& request) {
  ++counts_.growths;
  const uint64_t refusals_before = supply_.refusals();
  request.pool->BeginRequest();
  absl::Status failure;
  for (;;) {
    const uint64_t moved_before = grower_.moved();
    absl::StatusOr<Block*> block = TryOnce(request);
    if (grower_.moved() != moved_before || !block.ok()) early_closes_left_ = kEarlyClosesPerShortage;
    DropEmptySegments(/*of_live_streams=*/false);
    if (block.ok()) {
      request.pool->EndRequest();
      return block;
    }
    failure = block.status();
    UpdateFigures();  // what was created for nothing has been reserved for a moment
    if (!absl::IsResourceExhausted(failure) || !CouldEverFit(request, refusals_before)) break;
    const absl::StatusOr<bool> waited = WaitForMore(grower_.pool_was_full() ? request.pool : nullptr);
    if (!waited.ok()) failure = waited.status();
    if (!waited.ok() || !*waited) break;
  }
  request.pool->EndRequest();
  (void)supply_.Release(std::min(grower_.TakeCreatedForFailed(), supply_.spare()));
  if (!absl::IsResourceExhausted(failure)) return failure;
  ++counts_.failed_allocations;
  return OutOfMemory(request, failure);
}

absl::StatusOr<Block*> Allocator::Impl::TryOnce(const Request& request) {
  // Another thread may have retired the pool during a wait.
  if (const absl::Status status = pools_.Find(request.pool->id()).status(); !status.ok()) return status;
  ReclaimRetiredPools();
  CompletionCheck completion(events_, *device_);
  for (Block* block : pending_queue_.TakeComplete(completion)) SettlePending(block);
  // Memory may have become free since the caller looked: just now, or by another thread during a wait.
  SegmentSet& set = SetFor(request);
  if (Block* block = set.free_index.BestFit(request.rounded); block != nullptr) {
    block->segment->Take(block, block->begin, request.rounded);
    return block;
  }
  absl::StatusOr<Block*> grown = GrowSet(set, request, completion);
  if (absl::IsResourceExhausted(grown.status())) {
    if (Block* block = TakeFromOtherClass(request); block != nullptr) return block;
  }
  // Short of memory that may well be free, had the driver answered: its refusal is the reason then.
  if (absl::IsResourceExhausted(grown.status()) && !completion.status().ok()) return completion.status();
  return grown;
}

// Sizes mix only when the alternative is to wait or to fail.
Block* Allocator::Impl::TakeFromOtherClass(const Request& request) {
  StreamHeap& heap = HeapFor(request);
  for (int size_class = 0; size_class < kSizeClassCount; ++size_class) {
    Block* block = heap.set(size_class).free_index.BestFit(request.rounded);
    if (block == nullptr) continue;
    block->segment->Take(block, block->begin, request.rounded);
    return block;
  }
  return nullptr;
}

absl::StatusOr<Block*> Allocator::Impl::GrowSet(SegmentSet& set, const Request& request, CompletionCheck& completion) {
  std::vector<Segment*> segments;
  for (const std::unique_ptr<Segment>& segment : set.segments) segments.push_back(segment.get());
  absl::StatusOr<Block*> block = grower_.Grow(segments, request.rounded, completion);
  if (!absl::IsNotFound(block.status())) return block;
  if (const absl::Status status = AddSegment(set, request); !status.ok()) return status;
  Segment* added = set.segments.back().get();
  return grower_.Grow(absl::MakeConstSpan(&added, 1), request.rounded, completion);
}

absl::Status Allocator::Impl::AddSegment(SegmentSet& set, const Request& request) {
  Bytes held;
  for (const std::unique_ptr<Segment>& segment : set.segments) held += segment->range().size;
  absl::StatusOr<Slab> slab = addresses_.Take(request.rounded, held);
  if (!slab.ok()) {
    DropEmptySegments(/*of_live_streams=*/true);
    slab = addresses_.Take(request.rounded, held);
    if (!slab.ok()) return slab.status();
  }
  set.segments.push_back(std::make_unique<Segment>(slab->range, supply_.chunk_size(), *slab->reservation,
                                                   &HeapFor(request), set.free_index, idle_queue_, arena_,
                                                   request.pool->figures()));
  return absl::OkStatus();
}

// Whether the request could be served if all queued work were complete, at best.
// A refusal of the device that an earlier request met is no reason to give up: it may have memory by now.
bool Allocator::Impl::CouldEverFit(const Request& request, uint64_t refusals_before) const {
  const std::optional<Bytes>& limit = request.pool->options().limit;
  if (limit && request.pool->figures().allocated.current() + request.rounded > *limit) return false;
  const uint64_t creatable = supply_.refusals() != refusals_before ? 0 : supply_.Creatable();
  const Bytes in_use = allocated_.current() + supply_.pool().bytes(ChunkState::kQuarantined);
  return supply_.released_since_sync() ||
         creatable * supply_.chunk_size() + (supply_.pool().bytes() - in_use) >= request.rounded;
}

std::optional<Ticket> Allocator::Impl::OldestIncomplete(const PoolState* pool) const {
  std::optional<Ticket> oldest;
  uint64_t number = 0;
  const std::optional<IdleExtent> extent = idle_queue_.Find([pool](const IdleExtent& candidate) {
    const StreamHeap& heap = *candidate.slots.segment->heap();
    return (pool == nullptr || &heap.pool() == pool) && !heap.stream()->IsComplete(candidate.epoch);
  });
  if (extent) {
    oldest = Ticket{extent->slots.segment->heap()->stream(), extent->epoch};
    number = extent->stamp;
  }
  for (const PendingBlock& pending : pending_queue_.blocks()) {
    if (pool != nullptr && &pending.block->segment->heap()->pool() != pool) continue;
    if (oldest && pending.number > number) break;
    for (const Ticket& ticket : pending.tickets) {
      if (!ticket.stream->IsComplete(ticket.epoch)) return ticket;
    }
    break;
  }
  return oldest;
}

absl::StatusOr<bool> Allocator::Impl::WaitForMore(const PoolState* pool) {
  const std::optional<Ticket> ticket = OldestIncomplete(pool);
  if (!ticket) {
    if (pool != nullptr) return false;
    // What was released lately may not be counted as free before the context is synchronised.
    if (!supply_.released_since_sync()) return false;
    const absl::Status status = WaitForContext();
    if (!status.ok()) return status;
    return true;
  }
  if (ticket->stream->IsOpen(ticket->epoch)) {
    const absl::StatusOr<uint64_t> closed = ticket->stream->Close(events_, *device_);
    if (!closed.ok()) return closed.status();
  }
  std::shared_ptr<const Event> event = ticket->stream->EventOf(ticket->epoch);
  if (event == nullptr) {
    const absl::Status status = WaitForContext();
    if (!status.ok()) return status;
    return true;
  }
  ++counts_.waits;
  mu_.Unlock();
  const absl::Status status = event->Synchronize();
  mu_.Lock();
  if (!status.ok()) return status;
  // Known without asking again, so that every round gets further even if the driver should refuse to be asked.
  event.reset();  // so that it can be recorded again
  ticket->stream->CompleteUpTo(ticket->epoch, events_);
  return true;
}

// Waits for everything that was queued in the context so far.
absl::Status Allocator::Impl::WaitForContext() {
  std::vector<Ticket> covered;
  for (std::shared_ptr<StreamState>& stream : streams_.Streams()) {
    const uint64_t epoch = stream->last_closed();
    covered.push_back(Ticket{std::move(stream), epoch});
  }
  ++counts_.waits;
  // Another thread may release more meanwhile, which the driver may not count yet.
  const ChunkCount released = supply_.pool().released();
  mu_.Unlock();
  const Driver& driver = device_->driver();
  const absl::StatusOr<ScopedContext> context = ScopedContext::Enter(*device_);
  absl::Status status = context.status();
  if (status.ok()) status = CallStatus(driver, driver.ctx_synchronize(), EntryPoint::ctx_synchronize);
  mu_.Lock();
  if (!status.ok()) return status;
  supply_.NoteSynchronized(released);
  for (const Ticket& ticket : covered) ticket.stream->CompleteUpTo(ticket.epoch, events_);
  return absl::OkStatus();
}

absl::Status Allocator::Impl::OutOfMemory(const Request& request, const absl::Status& reason) {
  const SegmentSet& set = SetFor(request);
  Shortage shortage;
  shortage.asked = request.asked;
  shortage.rounded = request.rounded;
  shortage.live = live_bytes_.current();
  shortage.allocated = allocated_.current();
  shortage.pending = pending_.current();
  for (const PendingBlock& pending : pending_queue_.blocks()) {
    for (const Ticket& ticket : pending.tickets) {
      std::string name = ToString(ticket.stream->key());
      std::vector<std::string>& names = shortage.pending_on;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
  }
  UpdateFigures();
  shortage.idle = idle_.current();
  shortage.reserved = reserved_.current();
  shortage.quarantined = supply_.pool().bytes(ChunkState::kQuarantined);
  shortage.partly_used =
      shortage.reserved - shortage.allocated - shortage.pending - shortage.idle - shortage.quarantined;
  shortage.largest_free = set.free_index.LargestSize();
  shortage.limit = options_.limit;
  shortage.pool = request.pool->Name();
  shortage.pool_limit = request.pool->options().limit;
  shortage.pool_reserved = request.pool->figures().reserved.current();
  shortage.pool_is_full = grower_.pool_was_full();
  if (const absl::StatusOr<MemoryInfo> info = device_->GetMemoryInfo(); info.ok()) shortage.device = *info;
  shortage.chunk_size = supply_.chunk_size();
  shortage.granularity = device_->granularity();
  shortage.handles_left = supply_.handles_left();
  shortage.addresses_left = Bytes(ProcessAddressBudget().left());
  shortage.reason = std::string(reason.message());
  return OutOfMemoryError(shortage);
}

}  // namespace expanse

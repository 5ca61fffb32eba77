// The part of the allocator that runs when no free block fits: growth, reclaim, waiting, and giving up.

#include <algorithm>
#include <utility>
#include <vector>

#include "core/allocator_impl.h"
#include "core/out_of_memory.h"

namespace expanse {

absl::StatusOr<DeviceAddress> Allocator::Impl::Serve(Bytes size, StreamKey key, PoolId pool,
                                                     std::optional<SoftLimitWarning>& warning) {
  const StallCountingLock lock(mu_, &lock_stalls_);
  const absl::StatusOr<PoolState*> from = pools_.Find(pool);
  if (!from.ok()) return from.status();
  const Request request{size, RoundUp(size, kBlockAlignment), key, *from};
  Block* block = TakeAtHand(request);
  if (block == nullptr) {
    absl::StatusOr<Block*> found = AllocateSlowly(request);
    UpdateFigures();
    warning = soft_limit_.TakeDue();
    if (!found.ok()) return found.status();
    block = *found;
  }
  return HandOut(block, request.asked);
}

// While memory is being created ahead, a request waits for what it needs of it. Then the ladder: what other streams
// have finished with; growth out of spare, created and moved chunks; free blocks of the stream's other size classes;
// idle memory of other allocators; the program's callbacks; waiting for the oldest work that holds memory back. After
// each of the last three it begins again, because the lock was released meanwhile: other threads may have taken what
// was won, or freed more. So a request fails only right after an attempt that saw all that had been freed until then.
absl::StatusOr<Block*> Allocator::Impl::AllocateSlowly(const Request& request) {
  ++counts_.growths;
  streams_.FindOrAdd(request.stream)->Identify(*device_);
  Climb climb(supply_.refusals());
  request.pool->BeginRequest();
  absl::Status failure;
  absl::Status wait;  // the driver would not wait
  for (;;) {
    AwaitPrewarmed(request);
    const uint64_t moved_before = grower_.moved();
    absl::StatusOr<Block*> block = TryOnce(request);
    climb.AddCreated(grower_.TakeCreatedForFailed());
    if (grower_.moved() != moved_before || !block.ok()) early_closes_left_ = kEarlyClosesPerShortage;
    DropEmptySegments(/*of_live_streams=*/false);
    if (block.ok()) {
      request.pool->EndRequest();
      return block;
    }
    failure = block.status();
    UpdateFigures();  // what was created for nothing has been reserved for a moment
    if (!absl::IsResourceExhausted(failure)) break;
    if (!wait.ok()) {
      failure = wait;
      break;
    }
    if (AskOtherAllocators(climb) || AskCallbacks(request, failure, climb)) continue;
    if (!CouldEverFit(request, climb)) break;
    const absl::StatusOr<bool> waited = WaitForMore(grower_.pool_was_full() ? request.pool : nullptr, climb);
    if (waited.ok() && !*waited) break;
    wait = waited.status();
  }
  request.pool->EndRequest();
  const Bytes released = supply_.Release(climb.created(), ReleaseBound::kAtMost).bytes;
  if (!absl::IsResourceExhausted(failure)) return failure;
  ++counts_.rungs.failed;
  UpdateFigures();
  Shortage shortage = DescribeShortage(request, failure, climb);
  if (!shortage.needed.is_zero()) shortage.needed += released;
  if (recorder_.on()) {
    const uint64_t device_free = shortage.device_free.value_or(Bytes()).count();
    const uint32_t stream = streams_.FindOrAdd(request.stream)->number();
    recorder_.Add({device_free, request.asked, stream, 0, SnapshotEventKind::kOutOfMemory});
  }
  return OutOfMemoryError(shortage);
}

absl::StatusOr<Block*> Allocator::Impl::TryOnce(const Request& request) {
  // Another thread may have retired the pool during a wait.
  if (const absl::Status status = pools_.Find(request.pool->id()).status(); !status.ok()) return status;
  grower_.BeginAttempt();
  const bool deterministic = request.pool->options().deterministic;
  if (deterministic) {
    if (const absl::Status status = ClearPlace(request); !status.ok()) return status;
  }
  ReclaimRetiredPools();
  CompletionCheck completion(events_, *device_);
  if (SettleComplete(completion) > 0) ++counts_.rungs.collected;
  // Memory may have become free since the caller looked: just now, or by another thread while the lock was released.
  if (Block* block = TakeAtHand(request); block != nullptr) return block;
  absl::StatusOr<Block*> grown =
      deterministic ? GrowFixed(request, completion) : GrowSet(SetFor(request), request, completion);
  if (absl::IsResourceExhausted(grown.status()) && !deterministic) {
    if (Block* block = TakeFromOtherClass(request); block != nullptr) return block;
  }
  // Short of memory that may well be free, had the driver answered: its refusal is the reason then.
  if (absl::IsResourceExhausted(grown.status()) && !completion.status().ok()) return completion.status();
  return grown;
}

SegmentSet& Allocator::Impl::SetFor(const Request& request) {
  return HeapFor(request).set(request.pool->options().deterministic ? 0 : ClassOf(request));
}

// Sizes mix only when the alternative is to wait or to fail.
Block* Allocator::Impl::TakeFromOtherClass(const Request& request) {
  StreamHeap& heap = HeapFor(request);
  for (int size_class = 0; size_class < kSizeClassCount; ++size_class) {
    Block* block = heap.set(size_class).free_index.BestFit(request.rounded);
    if (block == nullptr) continue;
    block->segment->Take(block, block->begin, request.rounded);
    ++counts_.rungs.other_class;
    return block;
  }
  return nullptr;
}

absl::StatusOr<Block*> Allocator::Impl::GrowSet(SegmentSet& set, const Request& request, CompletionCheck& completion) {
  std::vector<Segment*> segments;
  for (const std::unique_ptr<Segment>& segment : set.segments) segments.push_back(segment.get());
  grower_.NoteInUse(allocated_.current() + pending_.current() + request.rounded);
  const uint64_t largest_chunk = LargestChunkFor(request);
  absl::StatusOr<Block*> block = grower_.Grow(segments, request.rounded, largest_chunk, completion);
  if (!absl::IsNotFound(block.status())) return block;
  if (const absl::Status status = AddSegment(set, request, completion); !status.ok()) return status;
  Segment* added = set.segments.back().get();
  return grower_.Grow(absl::MakeConstSpan(&added, 1), request.rounded, largest_chunk, completion);
}

uint64_t Allocator::Impl::LargestChunkFor(const Request& request) const {
  if (options_.chunk_size) return 1;
  return LargestChunk(request.rounded, supply_.pool().bytes(), supply_.pool().bytes_left(), supply_.smallest());
}

// Where no addresses are left, those are taken that hold nothing, and then those that only idle memory lies at: made
// spare, it serves the request.
absl::Status Allocator::Impl::AddSegment(SegmentSet& set, const Request& request, CompletionCheck& completion) {
  Bytes held;
  for (const std::unique_ptr<Segment>& segment : set.segments) held += segment->range().size;
  absl::StatusOr<Slab> slab = addresses_.Take(request.rounded, held);
  if (!slab.ok()) {
    DropEmptySegments(/*of_live_streams=*/true);
    slab = addresses_.Take(request.rounded, held);
  }
  if (!slab.ok()) {
    ChunkMover::Filter of_unused{completion};
    of_unused.unused_segments = true;
    const ChunkProgress idle = mover_.MakeSpare(supply_.pool().bytes(), of_unused);
    if (!idle.status.ok()) return idle.status;
    DropEmptySegments(/*of_live_streams=*/true);
    slab = addresses_.Take(request.rounded, held);
    if (!slab.ok()) return slab.status();
  }
  AddSegmentAt(*slab, set, request);
  return absl::OkStatus();
}

Segment* Allocator::Impl::AddSegmentAt(const Slab& slab, SegmentSet& set, const Request& request) {
  set.segments.push_back(std::make_unique<Segment>(slab.range, supply_.smallest(), *slab.reservation, &HeapFor(request),
                                                   set.free_index, idle_queue_, arena_, pins_,
                                                   request.pool->figures()));
  return set.segments.back().get();
}

// Only where device or handle budget are what was short: not addresses, nor this allocator's or pool's own limit.
bool Allocator::Impl::AskOtherAllocators(Climb& climb) {
  const Bytes missing = grower_.missing();
  if (missing.is_zero() || grower_.pool_was_full() || supply_.pool().bytes_left() < grower_.needed()) return false;
  if (!climb.MayAskOthers() || !peer_->HasOthers()) return false;
  climb.NoteOthersAsked();
  ++counts_.rungs.others_asked;
  mu_.Unlock();
  const Bytes given = peer_->AskOthers(missing);
  mu_.Lock();
  if (!given.is_zero()) {
    supply_.NoteReleasedByOthers();
    climb.NoteDeviceHasMore(supply_.refusals());
  }
  return true;
}

bool Allocator::Impl::AskCallbacks(const Request& request, const absl::Status& failure, Climb& climb) {
  if (!climb.MayCall() || !callbacks_.CanCall()) return false;
  ++counts_.rungs.callbacks_asked;
  const Shortage shortage = DescribeShortage(request, failure, climb);
  mu_.Unlock();
  const bool again = callbacks_.Call(shortage);
  mu_.Lock();
  climb.NoteCalled(again);
  // It may have given back memory that it held outside of this allocator.
  supply_.ForgetRefusal();
  climb.NoteDeviceHasMore(supply_.refusals());
  return true;
}

// Whether the request could be served if all queued work were complete, at best.
// A refusal of the device that an earlier request met is no reason to give up: it may have memory by now.
bool Allocator::Impl::CouldEverFit(const Request& request, const Climb& climb) const {
  const std::optional<Bytes>& limit = request.pool->options().limit;
  if (limit && request.pool->figures().allocated.current() + request.rounded > *limit) return false;
  const ChunkPool& chunks = supply_.pool();
  const Bytes in_use = allocated_.current() + chunks.bytes(ChunkState::kQuarantined);
  const Bytes most = std::max(chunks.limit(), chunks.bytes());  // of a lowered limit more may be held
  if (in_use + request.rounded > most) return false;
  const bool refused = supply_.refusals() != climb.refusals_before();
  const uint64_t could = supply_.Creatable(LargestChunkFor(request));
  const uint64_t creatable = std::min(refused ? supply_.left_at_refusal() : could, could);
  return supply_.released_since_sync() || creatable * supply_.smallest() + (chunks.bytes() - in_use) >= request.rounded;
}

Shortage Allocator::Impl::DescribeShortage(const Request& request, const absl::Status& reason, const Climb& climb) {
  const SegmentSet& set = SetFor(request);
  Shortage shortage;
  shortage.asked = request.asked;
  shortage.rounded = request.rounded;
  shortage.needed = grower_.needed();
  shortage.missing = grower_.missing();
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
  shortage.idle = idle_.current();
  shortage.reserved = reserved_.current();
  shortage.pinned = pinned_.current();
  shortage.quarantined = supply_.pool().bytes(ChunkState::kQuarantined);
  shortage.partly_used =
      shortage.reserved - shortage.allocated - shortage.pending - shortage.idle - shortage.quarantined;
  shortage.largest_free = set.free_index.LargestSize();
  shortage.limit = limit_;
  shortage.pool = request.pool->Name();
  shortage.pool_limit = request.pool->options().limit;
  shortage.pool_reserved = request.pool->figures().reserved.current();
  shortage.pool_is_full = grower_.pool_was_full();
  if (const absl::StatusOr<MemoryInfo> info = device_->GetMemoryInfo(); info.ok()) shortage.device_free = info->free;
  shortage.device_total = device_->total_memory();
  shortage.chunk_size = supply_.smallest();
  shortage.granularity = device_->granularity();
  shortage.handles_left = supply_.handles_left();
  shortage.addresses_left = Bytes(ProcessAddressBudget().left());
  shortage.other_allocators_asked = climb.others_asked_times();
  shortage.callback_rounds = climb.callback_rounds();
  shortage.waits = climb.waits();
  shortage.reason = std::string(reason.message());
  return shortage;
}

}  // namespace expanse

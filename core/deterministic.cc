// The part of the allocator that serves requests of deterministic pools: first it is known where, then memory is
// brought there.

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/allocator_impl.h"

namespace expanse {

// All or none: where the second stream's addresses begin must not depend on how many there are in all.
absl::Status Allocator::Impl::ReserveForPool(const PoolState& pool) {
  constexpr uint64_t kDeviceMemories = 8;
  if (!pool.options().deterministic) return absl::OkStatus();
  auto addresses = std::make_unique<AddressSpace>(*device_, supply_.smallest(), ProcessAddressBudget());
  const Bytes device_memory = RoundUp(device_->total_memory(), supply_.smallest());
  const absl::Status status = addresses->ReserveWhole(device_memory * kDeviceMemories);
  if (status.ok()) pool_addresses_.emplace(pool.id(), std::move(addresses));
  return status;
}

absl::Status Allocator::Impl::AddFixedSegment(const Request& request) {
  StreamHeap& heap = HeapFor(request);
  Bytes held;
  for (const std::unique_ptr<Segment>& segment : heap.set(0).segments) held += segment->range().size;
  const absl::StatusOr<Slab> slab = pool_addresses_.at(request.pool->id())->TakeWithin(request.rounded, held);
  if (!slab.ok()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        request.pool->Name(), " is deterministic and has used up its addresses: ", slab.status().message()));
  }
  heap.placement()->AddSegment(AddSegmentAt(*slab, heap.set(0), request));
  return absl::OkStatus();
}

// Done before an attempt, because waiting releases the lock.
absl::Status Allocator::Impl::ClearPlace(const Request& request) {
  for (;;) {
    // Another thread may have retired the pool meanwhile, or placed a block here.
    if (const absl::Status status = pools_.Find(request.pool->id()).status(); !status.ok()) return status;
    const std::optional<FixedPlacement::Place> place = HeapFor(request).placement()->Find(request.rounded);
    if (!place) return absl::OkStatus();
    const auto in_the_way = [&place](const PendingBlock& pending) {
      return pending.block->range().Overlaps(place->range);
    };
    if (pending_queue_.Find(in_the_way) == nullptr) return absl::OkStatus();
    CompletionCheck completion(events_, *device_);
    SettleComplete(completion);
    const PendingBlock* pending = pending_queue_.Find(in_the_way);
    if (pending == nullptr) return absl::OkStatus();
    for (const Ticket& ticket : pending->tickets) {
      if (ticket.stream->IsComplete(ticket.epoch)) continue;
      const Ticket waited_for = ticket;
      if (const absl::Status status = WaitFor(waited_for); !status.ok()) return status;
      break;
    }
  }
}

absl::StatusOr<Block*> Allocator::Impl::GrowFixed(const Request& request, CompletionCheck& completion) {
  FixedPlacement& placement = *HeapFor(request).placement();
  std::optional<FixedPlacement::Place> place = placement.Find(request.rounded);
  if (!place) {
    if (const absl::Status status = AddFixedSegment(request); !status.ok()) return status;
    place = placement.Find(request.rounded);
  }
  grower_.NoteInUse(allocated_.current() + pending_.current() + request.rounded);
  absl::StatusOr<Block*> block = grower_.GrowAt(*place->segment, place->range, LargestChunkFor(request), completion);
  if (block.ok()) {
    placement.Occupy(*block);
  } else {
    placement.NoteQuarantined(*place->segment);
  }
  return block;
}

}  // namespace expanse

// The way of a request that memory at hand serves, and of a free: what runs for every tensor of a training step.
//
//   Allocate     validates, and finds the pool and the stream's heap in it
//   TakeAtHand   finds the best fit in the free index of the size class, and takes the block out of its segment
//   HandOut      keeps the books of live memory
//   Free         finds the live block, and settles whether another stream may still use it
//   ReleaseBlock gives it back to its segment, where it merges, and whole chunks fall idle
//
// None of it makes a driver call but where a free says so. What it calls lies in free_index.h and block_tree.h (the
// index), segment.cc (Take, Release) and idle_queue.cc (Push).

#include <optional>

#include "core/allocator_impl.h"

namespace expanse {

absl::StatusOr<DeviceAddress> Allocator::Impl::Allocate(Bytes size, StreamHandle stream, PoolId pool) {
  if (size.is_zero() || size > device_->total_memory()) return NoSuchSize(size);
  const StreamKey key = StreamKey::Of(stream);
  {
    const StallCountingLock lock(mu_, &lock_stalls_);
    if (PoolState* from = pools_.FindInUse(pool); from != nullptr) {
      const Request request{size, RoundUp(size, kBlockAlignment), key, from};
      if (Block* block = TakeAtHand(request); block != nullptr) return HandOut(block, size);
    }
  }
  std::optional<SoftLimitWarning> warning;
  const absl::StatusOr<DeviceAddress> address = Serve(size, key, pool, warning);
  if (warning) warning->Give();
  return address;
}

Block* Allocator::Impl::TakeAtHand(const Request& request) {
  StreamHeap& heap = HeapFor(request);
  if (FixedPlacement* placement = heap.placement()) return placement->TakeMapped(request.rounded);
  Block* block = heap.set(ClassOf(request)).free_index.BestFit(request.rounded);
  if (block != nullptr) block->segment->Take(block, block->begin, request.rounded);
  return block;
}

StreamHeap& Allocator::Impl::HeapFor(const Request& request) {
  if (StreamHeap* heap = request.pool->Find(request.stream); heap != nullptr) return *heap;
  return request.pool->Add(streams_.FindOrAdd(request.stream));
}

// A device that once refused to create is shared with others, who can take what the limit leaves.
int Allocator::Impl::ClassOf(const Request& request) const {
  if (request.rounded <= kLargestOfClass[0]) return 0;  // whatever is left
  const ChunkPool& chunks = supply_.pool();
  const bool plentiful = supply_.refusals() == 0 && IsPlentiful(chunks.bytes(), chunks.bytes_left());
  return SizeClassOf(request.rounded, plentiful);
}

DeviceAddress Allocator::Impl::HandOut(Block* block, Bytes asked) {
  block->padding = static_cast<uint16_t>((block->size - asked).count());
  live_.Insert(block);
  PoolFigures& pool = block->segment->heap()->pool().figures();
  for (FigureCounter* live : {&live_bytes_, &pool.live}) live->Add(asked);
  for (FigureCounter* allocated : {&allocated_, &pool.allocated}) allocated->Add(block->size);
  ++counts_.allocations;
  if (recorder_.on()) {
    const uint32_t stream = block->segment->heap()->stream()->number();
    recorder_.Add({block->begin.value(), asked, stream, 0, SnapshotEventKind::kAllocate});
  }
  UpdateIdle();
  if (age_log_ && NoteAge()) (void)GiveBackOld();
  return block->begin;
}

absl::Status Allocator::Impl::Free(DeviceAddress address, std::optional<StreamHandle> stream) {
  const StallCountingLock lock(mu_, &lock_stalls_);
  Block* block = live_.Take(address);
  if (block == nullptr) return NotLive(address);
  const StreamHeap& heap = *block->segment->heap();
  const std::shared_ptr<StreamState>& own = heap.stream();
  PoolFigures& pool = heap.pool().figures();
  for (FigureCounter* live : {&live_bytes_, &pool.live}) live->Subtract(block->requested());
  for (FigureCounter* allocated : {&allocated_, &pool.allocated}) allocated->Subtract(block->size);
  ++counts_.frees;
  if (heap.placement() != nullptr) heap.placement()->Vacate(block);

  // Its own stream, unless that was destroyed: then the handle may name another one.
  const bool elsewhere = stream && (own->detached() || !(StreamKey::Of(*stream) == own->key()));
  if (elsewhere || block->has_users) {
    FreeShared(block, elsewhere ? Named(*stream) : own);
  } else {
    recorder_.Add({address.value(), block->requested(), own->number(), own->number(), SnapshotEventKind::kFree});
    ReleaseBlock(block);
  }
  if (heap.pool().retired()) {
    ReclaimRetiredPools();
    UpdateFigures();
  }
  if (age_log_ && NoteAge()) (void)GiveBackOld();
  UpdateIdle();
  return absl::OkStatus();
}

void Allocator::Impl::ReleaseBlock(Block* block) {
  StreamState& stream = *block->segment->heap()->stream();
  stream.AddIdle(block->segment->Release(block, FreeStamp{idle_queue_.NextStamp(), stream.current_epoch()}));
  if (early_closes_left_ == 0 || stream.idle_in_epoch() < kIdleChunksPerEpoch) return;
  // Only its own thread can name a per-thread stream, and it need not be the one that frees.
  if (stream.detached() || stream.key().is_per_thread()) return;
  --early_closes_left_;
  (void)stream.Close(events_, *device_);  // after a refusal the epoch is open as before
}

}  // namespace expanse

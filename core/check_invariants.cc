// The allocator as a whole: whether its parts agree with each other.

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/allocator_impl.h"
#include "core/segment_sums.h"

namespace expanse {
namespace {

absl::Status CheckEqual(const char* what, uint64_t kept, uint64_t counted) {
  if (kept == counted) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": kept ", kept, ", counted ", counted));
}

absl::Status CheckChunks(const Segment& segment, const ChunkPool& pool) {
  const uint64_t slots = segment.range().size / segment.slot_size();
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const ChunkId chunk = segment.chunk(slot);
    if (chunk.is_none()) continue;
    const SlotRun covered = segment.ChunkAt(slot);
    const AddressRange range{segment.AddressOf(covered.first), segment.slot_size() * covered.count};
    if (pool.state(chunk) != ChunkState::kMapped || pool.range(chunk) != range) {
      return absl::InternalError(absl::StrCat("the chunk of slot ", slot, " is not mapped there"));
    }
  }
  return absl::OkStatus();
}

// A pool's figures are the sums over its segments.
absl::Status CheckPool(const PoolState& pool) {
  SegmentSums all;
  absl::Status status;
  for (const StreamHeap* heap : pool.Heaps()) {
    if (&heap->pool() != &pool) status.Update(absl::InternalError("a heap is in another pool"));
    all.Add(*heap);
  }
  const HeapStats& sums = all.stats();
  const PoolFigures& figures = pool.figures();
  status.Update(CheckEqual("live bytes of a pool", figures.live.current().count(), sums.live.count()));
  status.Update(CheckEqual("allocated bytes of a pool", figures.allocated.current().count(), sums.allocated.count()));
  status.Update(CheckEqual("pending bytes of a pool", figures.pending.current().count(), sums.pending.count()));
  status.Update(CheckEqual("reserved bytes of a pool", figures.reserved.current().count(), sums.mapped.count()));
  status.Update(CheckEqual("idle bytes of a pool", figures.idle.current().count(), sums.idle.count()));
  status.Update(CheckEqual("pinned bytes of a pool", figures.pinned.current().count(), all.pinned().count()));
  const std::optional<Bytes>& limit = pool.options().limit;
  if (limit && figures.reserved.current() > *limit) {
    status.Update(absl::InternalError(absl::StrCat(pool.Name(), " has ", ToString(figures.reserved.current()),
                                                   " mapped, above its limit of ", ToString(*limit))));
  }
  return status;
}

}  // namespace

absl::Status Allocator::Impl::CheckInvariants() const {
  MutexLock lock(mu_);
  absl::Status status = supply_.CheckInvariants();
  status.Update(live_.CheckInvariants());
  status.Update(idle_queue_.CheckInvariants());
  status.Update(pending_queue_.CheckInvariants());
  status.Update(recorder_.CheckInvariants());
  status.Update(addresses_.CheckInvariants());
  status.Update(pins_.CheckInvariants());
  if (age_log_) status.Update(age_log_->CheckInvariants());
  SegmentSums all;
  uint64_t users = 0;
  const ChunkPool& pool = supply_.pool();
  for (const std::shared_ptr<StreamState>& stream : streams_.Streams()) status.Update(stream->CheckInvariants());
  for (const PoolState* pool : pools_.Pools()) status.Update(CheckPool(*pool));
  Bytes usable = addresses_.usable();
  Bytes at_hand = addresses_.at_hand();
  for (const auto& [id, of_pool] : pool_addresses_) {
    status.Update(of_pool->CheckInvariants());
    usable += of_pool->usable();
    at_hand += of_pool->at_hand();
  }
  for (StreamHeap* heap : pools_.Heaps()) {
    if (heap->placement() != nullptr) status.Update(heap->placement()->CheckInvariants());
    for (int size_class = 0; size_class < kSizeClassCount; ++size_class) {
      const SegmentSet& set = heap->set(size_class);
      status.Update(set.free_index.CheckInvariants());
      Bytes free;
      for (const std::unique_ptr<Segment>& segment : set.segments) {
        if (segment->heap() != heap) status.Update(absl::InternalError("a segment is in another stream's heap"));
        status.Update(segment->CheckInvariants());
        status.Update(CheckChunks(*segment, pool));
        free += segment->BytesIn(BlockState::kFree);
        all.Add(*segment);
        for (const Block* block = segment->first_block(); block != nullptr; block = block->next) {
          if (block->state != BlockState::kUsed) continue;
          if (block->has_users != users_.contains(block)) status.Update(absl::InternalError("users of a block"));
          users += block->has_users ? 1 : 0;
          if (live_.Find(block->begin) != block || RoundUp(block->requested(), kBlockAlignment) != block->size) {
            status.Update(
                absl::InternalError(absl::StrCat("the used block ", ToString(block->range()), " is not live")));
          }
        }
      }
      status.Update(CheckEqual("bytes in a free index", set.free_index.bytes().count(), free.count()));
    }
  }
  const HeapStats& sums = all.stats();
  Bytes queued;
  for (const PendingBlock& pending : pending_queue_.blocks()) queued += pending.block->size;
  const Bytes slot_size = supply_.smallest();
  status.Update(CheckEqual("mapped bytes against blocks", sums.mapped.count(),
                           (sums.allocated + sums.pending + sums.free).count()));
  status.Update(CheckEqual("blocks with users", users_.size(), users));
  status.Update(CheckEqual("live bytes", live_bytes_.current().count(), sums.live.count()));
  status.Update(CheckEqual("allocated bytes", allocated_.current().count(), sums.allocated.count()));
  status.Update(CheckEqual("pending bytes", pending_.current().count(), sums.pending.count()));
  status.Update(CheckEqual("queued pending bytes", queued.count(), sums.pending.count()));
  status.Update(CheckEqual("live blocks", live_.size(), sums.live_blocks));
  status.Update(CheckEqual("blocks", arena_.in_use(), all.blocks()));
  status.Update(CheckEqual("mapped bytes", pool.bytes(ChunkState::kMapped).count(), sums.mapped.count()));
  status.Update(CheckEqual("idle slots", (slot_size * idle_queue_.idle_slots()).count(), sums.idle.count()));
  status.Update(CheckEqual("reserved bytes", reserved_.current().count(), pool.bytes().count()));
  status.Update(CheckEqual("idle bytes", idle_.current().count(), (sums.idle + supply_.spare()).count()));
  status.Update(CheckEqual("addresses", usable.count(), (at_hand + sums.address_space).count()));
  status.Update(CheckEqual("pinned bytes", pinned_.current().count(), all.pinned().count()));
  // The guarantee: whatever is held is in use, pending, a free part of a chunk that is in use or pinned, idle or
  // quarantined; and no more was idle, when memory was created, than the growth policy allows.
  const Bytes partly_used = sums.free - sums.idle;
  const Bytes accounted =
      sums.allocated + sums.pending + partly_used + idle_.current() + pool.bytes(ChunkState::kQuarantined);
  if (prewarmed_.current() > supply_.spare()) {
    status.Update(
        absl::InternalError(absl::StrCat(ToString(prewarmed_.current()), " were created ahead and not taken, but ",
                                         ToString(supply_.spare()), " are spare")));
  }
  if (!prewarm_.running && !(prewarm_.left + supply_.in_creation()).is_zero()) {
    status.Update(absl::InternalError("memory is being created ahead by nobody"));
  }
  grower_.Audit();
  status.Update(grower_.CheckInvariants());
  status.Update(CheckEqual("reserved bytes against their uses", pool.bytes().count(), accounted.count()));
  return status;
}

}  // namespace expanse

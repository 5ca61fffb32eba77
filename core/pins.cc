// The part of the allocator that keeps memory in place and tells what lies behind it.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/allocator_impl.h"

namespace expanse {

absl::StatusOr<const Segment*> Allocator::Impl::FindLiveRange(AddressRange range) const {
  if (range.size.is_zero()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the range at ", ToString(range.begin), " is of 0 bytes, expected at least 1"));
  }
  const Segment* segment = FindSegment(range.begin);
  const Block* block = segment == nullptr ? nullptr : segment->Find(range.begin);
  if (block == nullptr || block->state != BlockState::kUsed) return NotLive(range.begin);
  if (range.size > block->end() - range.begin) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(range.size), " at address ", ToString(range.begin),
                                                   " do not lie in one live block: that one is ",
                                                   ToString(block->range())));
  }
  return segment;
}

absl::Status Allocator::Impl::Pin(AddressRange range) {
  MutexLock lock(mu_);
  const absl::StatusOr<const Segment*> segment = FindLiveRange(range);
  if (!segment.ok()) return segment.status();
  std::vector<ChunkId> chunks;
  for (DeviceAddress at = range.begin; at < range.end(); at = supply_.pool().range(chunks.back()).end()) {
    chunks.push_back((*segment)->chunk((*segment)->SlotOf(at)));
  }
  for (const ChunkId chunk : pins_.Pin(range, std::move(chunks))) {
    const Bytes size = supply_.pool().size(chunk);
    for (FigureCounter* pinned : {&pinned_, &(*segment)->heap()->pool().figures().pinned}) pinned->Add(size);
  }
  return absl::OkStatus();
}

absl::Status Allocator::Impl::Unpin(AddressRange range) {
  MutexLock lock(mu_);
  const absl::StatusOr<std::vector<ChunkId>> chunks = pins_.Unpin(range);
  if (!chunks.ok()) return chunks.status();
  for (const ChunkId chunk : *chunks) {
    const AddressRange place = supply_.pool().range(chunk);
    Segment* segment = FindSegment(place.begin);
    for (FigureCounter* pinned : {&pinned_, &segment->heap()->pool().figures().pinned}) pinned->Subtract(place.size);
    StreamState& stream = *segment->heap()->stream();
    stream.AddIdle(segment->Unpinned(place, stream.current_epoch()));
  }
  ReclaimRetiredPools();
  UpdateFigures();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HandleSpan>> Allocator::Impl::HandlesSpanning(AddressRange range) const {
  MutexLock lock(mu_);
  const absl::StatusOr<const Segment*> segment = FindLiveRange(range);
  if (!segment.ok()) return segment.status();
  const ChunkPool& pool = supply_.pool();
  std::vector<HandleSpan> spans;
  for (DeviceAddress at = range.begin; at < range.end(); at = spans.back().range().end()) {
    const ChunkId chunk = (*segment)->chunk((*segment)->SlotOf(at));
    const AddressRange place = pool.range(chunk);
    spans.push_back(HandleSpan{pool.handle(chunk), place, at - place.begin, std::min(place.end(), range.end()) - at});
  }
  return spans;
}

absl::StatusOr<MappingCallbacksId> Allocator::Impl::AddMappingCallbacks(MappingCallbacks callbacks) {
  MutexLock lock(mu_);
  return hooks_.Add(std::move(callbacks));
}

absl::Status Allocator::Impl::RemoveMappingCallbacks(MappingCallbacksId id) {
  MutexLock lock(mu_);
  return hooks_.Remove(id);
}

void Allocator::Impl::TellOfDestruction() {
  MutexLock lock(mu_);
  if (hooks_.empty()) return;
  for (StreamHeap* heap : pools_.Heaps()) {
    for (int size_class = 0; size_class < kSizeClassCount; ++size_class) {
      for (const std::unique_ptr<Segment>& segment : heap->set(size_class).segments) {
        for (const AddressRange run : segment->MappedRuns()) hooks_.WillUnmap(run);
      }
    }
  }
  // Until the last moment another allocator that starves may ask for memory.
  hooks_ = MappingHooks();
}

}  // namespace expanse

#include "core/segment_sums.h"

#include <algorithm>
#include <memory>

namespace expanse {

void SegmentSums::Add(const Segment& segment) {
  ++stats_.segments;
  stats_.address_space += segment.range().size;
  for (const Block* block = segment.first_block(); block != nullptr; block = block->next) {
    ++blocks_;
    switch (block->state) {
      case BlockState::kUsed:
        ++stats_.live_blocks;
        stats_.live += block->requested();
        stats_.allocated += block->size;
        break;
      case BlockState::kPending:
        ++stats_.pending_blocks;
        stats_.pending += block->size;
        break;
      case BlockState::kFree:
        stats_.free += block->size;
        stats_.largest_free = std::max(stats_.largest_free, block->size);
        break;
      case BlockState::kHole:
      case BlockState::kQuarantined:
        break;
    }
  }
  stats_.mapped += segment.slot_size() * segment.MappedSlots();
  pinned_ += segment.slot_size() * segment.PinnedSlots();
  stats_.idle += segment.slot_size() * segment.IdleSlots();
}

void SegmentSums::Add(const StreamHeap& heap) {
  for (int size_class = 0; size_class < kSizeClassCount; ++size_class) {
    for (const std::unique_ptr<Segment>& segment : heap.set(size_class).segments) Add(*segment);
  }
}

}  // namespace expanse

// The memory that one pool has for one stream.

#ifndef EXPANSE_CORE_STREAM_HEAP_H_
#define EXPANSE_CORE_STREAM_HEAP_H_

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/fixed_placement.h"
#include "core/free_index.h"
#include "core/segment.h"
#include "core/size_class.h"
#include "core/stream_state.h"

namespace expanse {

class PoolState;

// The segments of one stream and size class, and the free blocks of all of them.
struct SegmentSet {
  FreeIndex free_index;
  std::vector<std::unique_ptr<Segment>> segments;  // in the order in which they were added
};

// A stream's segments in one pool, by size class. In a deterministic pool all are of class 0, so that blocks of all
// sizes share them, and a placement says where blocks lie. Guarded by the allocator's lock.
class StreamHeap {
 public:
  StreamHeap(PoolState& pool, bool deterministic, std::shared_ptr<StreamState> stream)
      : pool_(pool),
        stream_(std::move(stream)),
        placement_(deterministic ? std::make_unique<FixedPlacement>() : nullptr) {}

  [[nodiscard]] PoolState& pool() const { return pool_; }
  [[nodiscard]] const std::shared_ptr<StreamState>& stream() const { return stream_; }
  [[nodiscard]] SegmentSet& set(int size_class) { return sets_[size_class]; }
  [[nodiscard]] const SegmentSet& set(int size_class) const { return sets_[size_class]; }
  // Null unless the pool is deterministic.
  [[nodiscard]] FixedPlacement* placement() const { return placement_.get(); }
  [[nodiscard]] bool HasSegments() const {
    for (const SegmentSet& set : sets_) {
      if (!set.segments.empty()) return true;
    }
    return false;
  }

 private:
  PoolState& pool_;
  // Tickets and blocks refer to the state for longer than the heap may live.
  const std::shared_ptr<StreamState> stream_;
  std::array<SegmentSet, kSizeClassCount> sets_;
  const std::unique_ptr<FixedPlacement> placement_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_STREAM_HEAP_H_

// What segments hold in all.

#ifndef EXPANSE_CORE_SEGMENT_SUMS_H_
#define EXPANSE_CORE_SEGMENT_SUMS_H_

#include <cstdint>

#include "core/segment.h"
#include "core/stats.h"
#include "core/stream_heap.h"
#include "vmm/units.h"

namespace expanse {

// Sums over the blocks and slots of any set of segments: a stream's, a pool's, or all. Counted afresh each time, so
// that nothing has to be kept up to date on behalf of those who seldom ask. The allocator's lock is held meanwhile.
class SegmentSums {
 public:
  // O(blocks and slots of what is added).
  void Add(const Segment& segment);
  void Add(const StreamHeap& heap);

  [[nodiscard]] const HeapStats& stats() const { return stats_; }
  [[nodiscard]] Bytes pinned() const { return pinned_; }     // pinned chunks, whatever is in them
  [[nodiscard]] uint64_t blocks() const { return blocks_; }  // of any state

 private:
  HeapStats stats_;
  Bytes pinned_;
  uint64_t blocks_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_SEGMENT_SUMS_H_

// The memory of one stream, and the register of all streams.

#ifndef EXPANSE_CORE_STREAM_HEAP_H_
#define EXPANSE_CORE_STREAM_HEAP_H_

#include <array>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/free_index.h"
#include "core/segment.h"
#include "core/size_class.h"
#include "core/stream_state.h"

namespace expanse {

// The segments of one stream and size class, and the free blocks of all of them.
struct SegmentSet {
  FreeIndex free_index;
  std::vector<std::unique_ptr<Segment>> segments;  // in the order in which they were added
};

// A stream's segments by size class. Guarded by the allocator's lock.
class StreamHeap {
 public:
  explicit StreamHeap(StreamKey key) : stream_(std::make_shared<StreamState>(key)) {}

  [[nodiscard]] const std::shared_ptr<StreamState>& stream() const { return stream_; }
  [[nodiscard]] SegmentSet& set(int size_class) { return sets_[size_class]; }
  [[nodiscard]] const SegmentSet& set(int size_class) const { return sets_[size_class]; }
  [[nodiscard]] bool HasSegments() const {
    for (const SegmentSet& set : sets_) {
      if (!set.segments.empty()) return true;
    }
    return false;
  }

 private:
  // Tickets and blocks refer to the state for longer than the heap may live.
  const std::shared_ptr<StreamState> stream_;
  std::array<SegmentSet, kSizeClassCount> sets_;
};

// Finds the heap of a stream. A destroyed stream's heap stays, without its handle, until it has no segment left.
// Guarded by the allocator's lock.
class StreamRegistry {
 public:
  // Null if the stream is not known. O(1).
  [[nodiscard]] StreamHeap* Find(StreamKey key) const;
  [[nodiscard]] StreamHeap& FindOrAdd(StreamKey key);
  // The handle names no stream of ours any more.
  void Retire(StreamKey key);
  // Forgets retired heaps without segments, but for those that a fence must find. O(retired heaps).
  void ForgetEmptyRetired();

  // All of them, retired ones too. O(streams).
  [[nodiscard]] std::vector<StreamHeap*> Heaps() const;
  [[nodiscard]] size_t retired() const { return retired_.size(); }

 private:
  absl::flat_hash_map<StreamKey, std::unique_ptr<StreamHeap>> heaps_;
  std::vector<std::unique_ptr<StreamHeap>> retired_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_STREAM_HEAP_H_

// Whole chunks that nobody uses, in the order in which they fell idle.

#ifndef EXPANSE_CORE_IDLE_QUEUE_H_
#define EXPANSE_CORE_IDLE_QUEUE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace expanse {

class Segment;

// Neighbouring slots of a segment.
struct SlotRun {
  Segment* segment = nullptr;
  uint64_t first = 0;
  uint64_t count = 0;

  [[nodiscard]] uint64_t end() const { return first + count; }
  [[nodiscard]] bool Touches(const SlotRun& other) const {
    return segment == other.segment && first < other.end() && other.first < end();
  }
};

// Slots of one segment, those of whole chunks, that fell idle in the same free.
struct IdleExtent {
  SlotRun slots;
  uint64_t stamp = 0;  // the number of that free; slots that have another stamp by now are not meant
  uint64_t epoch = 0;  // of the segment's stream, at that free
};

// Memory is moved in the order of this queue: what was freed longest ago first. On a periodic workload that is what
// will be wanted last, and the device has most likely finished with it (docs/design.md compares the orders).
//
// A slot that is used again leaves its extent behind as stale: extents are checked against their slots when they are
// looked at. The queue is rebuilt when most of it is stale, so that every operation but ForEach and Find costs O(1) a
// slot, amortised.
//
// Invariant: every idle slot of every segment is in exactly one extent with its stamp; stamps do not decrease towards
// the back. Guarded by the allocator's lock.
class IdleQueue {
 public:
  // These slots have fallen idle and carry `stamp`, which is no lower than any before and at most `newest`.
  void Push(const IdleExtent& extent);
  // So many slots are not idle any more. They no longer carry the stamp they were pushed with.
  void Forget(uint64_t slots) { idle_slots_ -= slots; }

  // Numbers frees, and whatever else puts chunks last, from 1 on across all streams.
  [[nodiscard]] uint64_t NextStamp() { return ++newest_; }
  // The last number that was given; 0 if none was.
  [[nodiscard]] uint64_t newest() const { return newest_; }
  // The slots that are idle now.
  [[nodiscard]] uint64_t idle_slots() const { return idle_slots_; }

  using Filter = absl::FunctionRef<bool(const IdleExtent&)>;
  // Calls `visit` with every idle chunk, those that fell idle first before others, until it returns false. O(extents
  // and chunks looked at).
  void ForEach(absl::FunctionRef<bool(const IdleExtent&, const SlotRun& chunk)> visit);
  // The first extent that still has an idle slot and that `wanted` accepts. O(extents and slots looked at).
  [[nodiscard]] std::optional<IdleExtent> Find(Filter wanted) const;

  // Forgets stale extents. Must be called before a segment that was ever pushed is destroyed. O(slots in the queue).
  void Compact();

  // OK, or INTERNAL: `idle_slots` is what the segments have.
  [[nodiscard]] absl::Status CheckInvariants() const;
  [[nodiscard]] size_t extents() const { return extents_.size(); }

 private:
  // Makes the extent shorter by the stale slots at its front; false if nothing is left.
  static bool TrimFront(IdleExtent& extent);

  std::deque<IdleExtent> extents_;
  uint64_t queued_slots_ = 0;  // the sum of all extents' counts
  uint64_t idle_slots_ = 0;
  uint64_t newest_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_IDLE_QUEUE_H_

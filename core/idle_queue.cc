#include "core/idle_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/segment.h"

namespace expanse {
namespace {

// Stale slots are forgotten once they outnumber the idle ones by this.
constexpr uint64_t kStaleSlack = 1024;

bool IsIdle(const IdleExtent& extent, uint64_t slot) { return extent.slots.segment->stamp(slot) == extent.stamp; }

}  // namespace

void IdleQueue::Push(const IdleExtent& extent) {
  extents_.push_back(extent);
  queued_slots_ += extent.slots.count;
  idle_slots_ += extent.slots.count;
  if (queued_slots_ > 2 * idle_slots_ + kStaleSlack) Compact();
}

bool IdleQueue::TrimFront(IdleExtent& extent) {
  SlotRun& slots = extent.slots;
  const uint64_t first = slots.segment->FindStamp(extent.stamp, slots.first, slots.end());
  slots.count = slots.end() - first;
  slots.first = first;
  return slots.count > 0;
}

void IdleQueue::ForEach(absl::FunctionRef<bool(const IdleExtent&, const SlotRun&)> visit) {
  bool more = true;
  for (IdleExtent& extent : extents_) {
    if (!more) break;
    // What went stale would otherwise be looked at again each time.
    const uint64_t before = extent.slots.count;
    const bool left = TrimFront(extent);
    queued_slots_ -= before - extent.slots.count;
    if (!left) continue;
    const SlotRun& slots = extent.slots;
    for (uint64_t slot = slots.first; slot < slots.end() && more;) {
      if (!IsIdle(extent, slot)) {
        ++slot;
        continue;
      }
      const SlotRun chunk = slots.segment->ChunkAt(slot);
      more = visit(extent, chunk);
      slot = chunk.end();
    }
  }
  while (!extents_.empty() && extents_.front().slots.count == 0) extents_.pop_front();
}

std::optional<IdleExtent> IdleQueue::Find(Filter wanted) const {
  for (const IdleExtent& extent : extents_) {
    IdleExtent trimmed = extent;
    if (TrimFront(trimmed) && wanted(trimmed)) return trimmed;
  }
  return std::nullopt;
}

void IdleQueue::Compact() {
  std::deque<IdleExtent> kept;
  for (IdleExtent& extent : extents_) {
    SlotRun& slots = extent.slots;
    while (TrimFront(extent)) {
      const uint64_t end = slots.segment->FindOtherStamp(extent.stamp, slots.first, slots.end());
      kept.push_back(extent);
      kept.back().slots.count = end - slots.first;
      slots.count = slots.end() - end;
      slots.first = end;
    }
  }
  extents_ = std::move(kept);
  queued_slots_ = idle_slots_;
}

absl::Status IdleQueue::CheckInvariants() const {
  uint64_t queued = 0;
  uint64_t idle = 0;
  uint64_t stamp = 0;
  for (const IdleExtent& extent : extents_) {
    if (extent.stamp < stamp) {
      return absl::InternalError(absl::StrCat("idle queue: stamp ", extent.stamp, " comes after ", stamp));
    }
    stamp = extent.stamp;
    queued += extent.slots.count;
    for (uint64_t slot = extent.slots.first; slot < extent.slots.end(); ++slot) idle += IsIdle(extent, slot) ? 1 : 0;
  }
  if (queued != queued_slots_ || idle != idle_slots_) {
    return absl::InternalError(absl::StrCat("idle queue: counts ", queued_slots_, " queued and ", idle_slots_,
                                            " idle slots, but has ", queued, " and ", idle));
  }
  return absl::OkStatus();
}

}  // namespace expanse

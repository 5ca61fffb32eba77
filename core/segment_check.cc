// What must hold in a segment after every operation.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/segment.h"

namespace expanse {

bool Segment::FollowsInChunk(uint64_t slot) const {
  const Slot& s = slots_[slot];
  if (s.chunk.is_none()) return s.place == 0 && s.chunk_slots == 0;
  if (s.place + 1 < s.chunk_slots && (slot + 1 == slots_.size() || slots_[slot + 1].chunk != s.chunk)) return false;
  if (s.place == 0) return s.chunk_slots > 0;
  const Slot& before = slots_[slot - 1];
  return before.chunk == s.chunk && before.place + 1 == s.place && before.chunk_slots == s.chunk_slots &&
         before.stamp == s.stamp;
}

absl::Status Segment::CheckInvariants() const {
  const auto broken = [](const Block& block, const char* what) {
    return absl::InternalError(absl::StrCat("segment: the block ", ToString(block.range()), " ", what));
  };
  DeviceAddress expected = range_.begin;
  const Block* prev = nullptr;
  size_t holes = 0;
  std::vector<bool> mapped(slots_.size(), true);
  std::vector<const Block*> idle_in(slots_.size(), nullptr);
  for (const Block* block = first_; block != nullptr; prev = block, block = block->next) {
    if (block->segment != this || block->prev != prev || block->begin != expected)
      return broken(*block, "is misplaced");
    if (block->size.is_zero() || !IsMultipleOf(block->size, Bytes(512))) return broken(*block, "has an odd size");
    expected = block->end();
    const bool free = block->state == BlockState::kFree;
    const bool hole = block->state == BlockState::kHole;
    if ((free || hole) && prev != nullptr && prev->state == block->state) return broken(*block, "should have merged");
    if (free_index_.Contains(block) != free) return broken(*block, "contradicts the free index");
    const auto it = holes_.find(block->begin);
    if ((it != holes_.end() && it->second == block) != hole) return broken(*block, "contradicts the holes");
    holes += hole ? 1 : 0;
    const bool unmapped = hole || block->state == BlockState::kQuarantined;
    if (unmapped && (SlotFloor(block->begin) != block->begin || SlotFloor(block->end()) != block->end())) {
      return broken(*block, "is unmapped and not made of whole slots");
    }
    if (!free && !unmapped) continue;
    const uint64_t end = std::min<uint64_t>(SlotOf(SlotFloor(block->end())), slots_.size());
    for (uint64_t slot = SlotOf(SlotCeil(block->begin)); slot < end; ++slot) {
      if (unmapped) mapped[slot] = false;
      const SlotRun chunk = ChunkAt(slot);
      if (free && AddressOf(chunk.first) >= block->begin && AddressOf(chunk.end()) <= block->end()) {
        idle_in[slot] = block;
      }
    }
    if (!unmapped && SlotOf(SlotCeil(block->end())) > slots_.size())
      return broken(*block, "lies beyond the mapped slots");
  }
  if (expected != range_.end() || holes != holes_.size())
    return absl::InternalError("segment: the blocks do not tile it");
  for (uint64_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& s = slots_[slot];
    const bool first_idle = idle_in[slot] != nullptr && (slot == 0 || idle_in[slot - 1] == nullptr);
    if (s.chunk.is_none() == mapped[slot] || (s.evicted && !s.chunk.is_none()) ||
        (s.stamp != 0) != (idle_in[slot] != nullptr) || (first_idle && FreeBlockOfIdle(slot) != idle_in[slot]) ||
        !FollowsInChunk(slot)) {
      return absl::InternalError(
          absl::StrCat("segment: slot ", slot, " at ", ToString(AddressOf(slot)), " contradicts the blocks"));
    }
  }
  return absl::OkStatus();
}

}  // namespace expanse

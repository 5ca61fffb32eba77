#include "core/segment.h"

#include <algorithm>
#include <limits>

#include "core/size_class.h"

namespace expanse {

Segment::Segment(AddressRange range, Bytes slot_size, const Reservation& reservation, StreamHeap* heap,
                 FreeIndex& free_index, IdleQueue& idle_queue, BlockArena& arena, const PinTable& pins,
                 PoolFigures& figures)
    : range_(range),
      slot_size_(slot_size),
      slot_shift_(absl::countr_zero(slot_size.count())),
      slot_odd_(slot_size.count() >> slot_shift_),
      reservation_(reservation),
      heap_(heap),
      free_index_(free_index),
      idle_queue_(idle_queue),
      arena_(arena),
      pins_(pins),
      figures_(figures),
      first_(arena.Make()) {
  first_->segment = this;
  first_->begin = range.begin;
  first_->size = range.size;
  first_->state = BlockState::kHole;
  Index(first_);
}

Segment::~Segment() {
  while (first_ != nullptr) {
    Block* next = first_->next;
    if (first_->state == BlockState::kFree) free_index_.Erase(first_);
    arena_.Recycle(first_);
    first_ = next;
  }
}

void Segment::Take(Block* free, DeviceAddress begin, Bytes size) {
  const bool may_hold_chunk = MayHoldChunk(free);
  free_index_.Erase(free);
  if (free->begin < begin) IndexFree(InsertBefore(free, begin - free->begin));
  if (const DeviceAddress end = begin + size; end < free->end()) IndexFree(InsertAfter(free, free->end() - end));
  free->state = BlockState::kUsed;
  if (!may_hold_chunk) return;
  // All chunks that the taken range touches.
  const SlotRun first = ChunkAt(SlotOf(begin));
  const uint64_t last = SlotOf(begin + size - Bytes(1));
  const uint64_t end = last < first.end() ? first.end() : ChunkAt(last).end();
  const bool may_be_pinned = !pins_.empty();
  uint64_t no_longer_idle = 0;
  for (Slot *slot = &slots_[first.first], *last = slot + (end - first.first); slot != last; ++slot) {
    if (slot->stamp == 0) continue;
    if (!may_be_pinned || !pins_.IsPinned(slot->chunk)) ++no_longer_idle;
    slot->stamp = 0;
  }
  if (no_longer_idle == 0) return;
  idle_queue_.Forget(no_longer_idle);
  figures_.idle.Subtract(slot_size_ * no_longer_idle);
}

uint64_t Segment::Release(Block* block, FreeStamp stamp) {
  const AddressRange freed = block->range();
  block->padding = 0;
  block->state = BlockState::kFree;
  if (Block* prev = block->prev; prev != nullptr && prev->state == BlockState::kFree) {
    free_index_.Erase(prev);
    AbsorbPrev(block);
  }
  if (Block* next = block->next; next != nullptr && next->state == BlockState::kFree) {
    free_index_.Erase(next);
    AbsorbNext(block);
  }
  IndexFree(block);
  if (!MayHoldChunk(block)) return 0;
  // The whole chunks that the freed range touches. None was idle before.
  const SlotRun free = WholeChunks(block->range(), freed);
  for (uint64_t slot = free.first; slot < free.end(); ++slot) slots_[slot].stamp = stamp.number;
  const uint64_t idle = pins_.empty() ? PushIdle(free, stamp) : PushUnpinned(free, stamp);
  if (idle > 0) figures_.idle.Add(slot_size_ * idle);
  return idle;
}

uint64_t Segment::PushIdle(const SlotRun& slots, FreeStamp stamp) {
  if (slots.count > 0) idle_queue_.Push(IdleExtent{slots, stamp.number, stamp.epoch});
  return slots.count;
}

uint64_t Segment::PushUnpinned(const SlotRun& slots, FreeStamp stamp) {
  uint64_t idle = 0;
  for (SlotRun run{this, slots.first, 0}; run.first < slots.end(); run.first += run.count + 1, run.count = 0) {
    while (run.end() < slots.end() && IsIdle(slots_[run.end()])) ++run.count;
    idle += PushIdle(run, stamp);
  }
  return idle;
}

Block* Segment::Fill(uint64_t first_slot, absl::Span<const MappedChunk> chunks) {
  static_assert(kLargestChunkSlots <= std::numeric_limits<decltype(Slot::chunk_slots)>::max());
  uint64_t end = first_slot;
  for (const MappedChunk& chunk : chunks) end += chunk.slots;
  if (slots_.size() < end) slots_.resize(end);
  uint64_t slot = first_slot;
  for (const MappedChunk& chunk : chunks) {
    for (uint8_t place = 0; place < chunk.slots; ++place, ++slot) {
      slots_[slot].chunk = chunk.id;
      slots_[slot].evicted = false;
      slots_[slot].place = place;
      slots_[slot].chunk_slots = static_cast<uint8_t>(chunk.slots);
    }
  }
  const DeviceAddress begin = AddressOf(first_slot);
  figures_.reserved.Add(slot_size_ * (end - first_slot));
  Block* hole = HoleAt(begin);
  Convert(hole, {begin, slot_size_ * (end - first_slot)}, BlockState::kFree);
  return hole;
}

void Segment::Evict(const SlotRun& slots) {
  Block* block = FreeBlockOfIdle(slots.first);
  for (uint64_t slot = slots.first; slot < slots.end(); ++slot) {
    slots_[slot] = Slot();
    slots_[slot].evicted = true;
  }
  idle_queue_.Forget(slots.count);
  figures_.idle.Subtract(slot_size_ * slots.count);
  figures_.reserved.Subtract(slot_size_ * slots.count);
  Convert(block, {AddressOf(slots.first), slot_size_ * slots.count}, BlockState::kHole);
}

void Segment::Quarantine(AddressRange slots) { Convert(HoleAt(slots.begin), slots, BlockState::kQuarantined); }

void Segment::Defer(const SlotRun& chunk) {
  const uint64_t stamp = idle_queue_.NextStamp();
  for (uint64_t slot = chunk.first; slot < chunk.end(); ++slot) slots_[slot].stamp = stamp;
  idle_queue_.Forget(chunk.count);
  idle_queue_.Push(IdleExtent{chunk, stamp, /*epoch=*/0});  // which is always complete
}

uint64_t Segment::Unpinned(AddressRange range, uint64_t epoch) {
  const SlotRun chunk{this, SlotOf(range.begin), range.size / slot_size_};
  if (slots_[chunk.first].stamp == 0) return 0;
  const uint64_t stamp = idle_queue_.NextStamp();
  for (uint64_t slot = chunk.first; slot < chunk.end(); ++slot) slots_[slot].stamp = stamp;
  idle_queue_.Push(IdleExtent{chunk, stamp, epoch});
  figures_.idle.Add(range.size);
  return chunk.count;
}

const Block* Segment::Find(DeviceAddress address) const {
  const Block* block = first_;
  while (!block->range().Contains(address)) block = block->next;
  return block;
}

SlotRun Segment::WholeChunks(AddressRange part, AddressRange touched) const {
  const SlotRun low = ChunkAt(SlotOf(touched.begin));
  const SlotRun high = ChunkAt(SlotOf(touched.end() - Bytes(1)));
  const uint64_t first = AddressOf(low.first) >= part.begin ? low.first : low.end();
  const uint64_t end = AddressOf(high.end()) <= part.end() ? high.end() : high.first;
  return SlotRun{const_cast<Segment*>(this), first, first < end ? end - first : 0};
}

Block* Segment::HoleAt(DeviceAddress address) const {
  auto it = holes_.upper_bound(address);
  return (--it)->second;
}

Block* Segment::FreeBlockOfIdle(uint64_t slot) const {
  while (slot > 0 && slots_[slot - 1].stamp != 0) --slot;
  // The block begins there, or in the chunk before. Other slots of that chunk may remember blocks of before.
  const DeviceAddress inside = AddressOf(slot);
  for (uint64_t at = slot + 1; at-- > 0;) {
    Block* block = slots_[at].block;
    if (block != nullptr && block->segment == this && block->state == BlockState::kFree &&
        block->range().Contains(inside)) {
      return block;
    }
  }
  return nullptr;
}

void Segment::IndexFree(Block* block) {
  free_index_.Insert(block);
  if (MayHoldChunk(block)) slots_[SlotOf(block->begin)].block = block;
}

void Segment::Index(Block* block) {
  if (block->state == BlockState::kHole) {
    holes_.emplace(block->begin, block);
  } else if (block->state == BlockState::kFree) {
    IndexFree(block);
  }
}

void Segment::Unindex(Block* block) {
  if (block->state == BlockState::kHole) {
    holes_.erase(block->begin);
  } else if (block->state == BlockState::kFree) {
    free_index_.Erase(block);
  }
}

void Segment::Convert(Block* block, AddressRange part, BlockState state) {
  Unindex(block);
  if (block->begin < part.begin) Index(InsertBefore(block, part.begin - block->begin));
  if (part.end() < block->end()) Index(InsertAfter(block, block->end() - part.end()));
  block->state = state;
  if (state != BlockState::kQuarantined) {
    if (Block* prev = block->prev; prev != nullptr && prev->state == state) {
      Unindex(prev);
      AbsorbPrev(block);
    }
    if (Block* next = block->next; next != nullptr && next->state == state) {
      Unindex(next);
      AbsorbNext(block);
    }
  }
  Index(block);
}

void Segment::AbsorbPrev(Block* block) {
  Block* prev = block->prev;
  block->begin = prev->begin;
  block->size += prev->size;
  block->prev = prev->prev;
  (prev->prev == nullptr ? first_ : prev->prev->next) = block;
  arena_.Recycle(prev);
}

void Segment::AbsorbNext(Block* block) {
  Block* next = block->next;
  block->size += next->size;
  block->next = next->next;
  if (next->next != nullptr) next->next->prev = block;
  arena_.Recycle(next);
}

Block* Segment::InsertBefore(Block* block, Bytes size) {
  Block* added = arena_.Make();
  added->segment = this;
  added->state = block->state;
  added->begin = block->begin;
  added->size = size;
  added->prev = block->prev;
  added->next = block;
  (block->prev == nullptr ? first_ : block->prev->next) = added;
  block->prev = added;
  block->begin += size;
  block->size -= size;
  return added;
}

Block* Segment::InsertAfter(Block* block, Bytes size) {
  Block* added = arena_.Make();
  added->segment = this;
  added->state = block->state;
  added->begin = block->end() - size;
  added->size = size;
  added->prev = block;
  added->next = block->next;
  if (block->next != nullptr) block->next->prev = added;
  block->next = added;
  block->size -= size;
  return added;
}

Bytes Segment::BytesIn(BlockState state) const {
  Bytes sum;
  for (const Block* block = first_; block != nullptr; block = block->next) {
    if (block->state == state) sum += block->size;
  }
  return sum;
}

bool Segment::IsUnused() const {
  for (const Block* block = first_; block != nullptr; block = block->next) {
    if (block->state != BlockState::kFree && block->state != BlockState::kHole) return false;
  }
  return true;
}

uint64_t Segment::EvictedSlots(const SlotRun& slots) const {
  uint64_t count = 0;
  const uint64_t end = std::min<uint64_t>(slots.end(), slots_.size());
  for (uint64_t slot = slots.first; slot < end; ++slot) count += slots_[slot].evicted ? 1 : 0;
  return count;
}

uint64_t Segment::MappedSlots() const {
  return std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.chunk.is_none(); });
}

uint64_t Segment::IdleSlots() const {
  return std::count_if(slots_.begin(), slots_.end(), [this](const Slot& slot) { return IsIdle(slot); });
}

uint64_t Segment::PinnedSlots() const {
  return std::count_if(slots_.begin(), slots_.end(), [this](const Slot& slot) { return pins_.IsPinned(slot.chunk); });
}

std::vector<AddressRange> Segment::MappedRuns() const {
  std::vector<AddressRange> runs;
  for (const Block* block = first_; block != nullptr; block = block->next) {
    if (block->state == BlockState::kHole || block->state == BlockState::kQuarantined) continue;
    if (!runs.empty() && runs.back().end() == block->begin) {
      runs.back().size += block->size;
    } else {
      runs.push_back(block->range());
    }
  }
  return runs;
}

}  // namespace expanse

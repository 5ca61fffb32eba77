// A stretch of addresses for one stream and size class, with the blocks it is divided into and the chunks behind it.

#ifndef EXPANSE_CORE_SEGMENT_H_
#define EXPANSE_CORE_SEGMENT_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/numeric/bits.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/block.h"
#include "core/free_index.h"
#include "core/idle_queue.h"
#include "core/pin_table.h"
#include "core/pool_figures.h"
#include "vmm/chunk_pool.h"
#include "vmm/reservation.h"
#include "vmm/units.h"

namespace expanse {

class StreamHeap;

// What memory carries from the moment it was freed.
struct FreeStamp {
  uint64_t number = 0;  // from IdleQueue::NextStamp
  uint64_t epoch = 0;   // of the segment's stream
};

// A chunk that was mapped, and how many slots it covers.
struct MappedChunk {
  ChunkId id;
  uint64_t slots = 1;
};

// Books only: the segment makes no driver call. It is told which chunks were mapped (Fill) and unmapped (Evict).
//
// Its range is divided into slots of the smallest chunk size; a chunk covers one or more neighbouring slots. A slot is
// wholly mapped or wholly a hole; blocks may begin and end anywhere at 512 bytes. A chunk, and each of its slots, is
// *free* when all of it lies in one free block, and *idle* when it is free and not pinned.
//
// Invariants: the blocks tile the range in address order; no two neighbours are both free or both holes; the free index
// has exactly the free blocks, `holes` exactly the holes; a slot has a chunk exactly if no hole or quarantined block
// covers it; a slot has a stamp exactly if it is free, the slots of a chunk all the same one; the idle queue has
// exactly the idle ones. Guarded by the allocator's lock.
class Segment {
 public:
  // One hole of `range`, a multiple of `slot_size`, all in `reservation`. All that is referred to must outlive it.
  Segment(AddressRange range, Bytes slot_size, const Reservation& reservation, StreamHeap* heap, FreeIndex& free_index,
          IdleQueue& idle_queue, BlockArena& arena, const PinTable& pins, PoolFigures& figures);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Makes `free` the used block [begin, begin + size), which it must hold; what is left of it on either side stays free
  // in other blocks. O(log free blocks + slots of the block).
  void Take(Block* free, DeviceAddress begin, Bytes size);
  // A used block is pending from now on.
  void SetPending(Block* used) { used->state = BlockState::kPending; }
  // A used or pending block becomes free and merges with its neighbours. Slots that thereby fall idle get `stamp`,
  // whose number is higher than any before; returns how many. O(log free blocks + slots of the block).
  uint64_t Release(Block* block, FreeStamp stamp);

  // Chunks were mapped one after the other from this slot on, all inside one hole: the slots become free and merge with
  // their neighbours. The caller must take part of every such chunk at once, which is why none becomes idle. Returns
  // the free block that now holds them. O(log blocks + slots).
  Block* Fill(uint64_t first_slot, absl::Span<const MappedChunk> chunks);
  // The idle chunks of these slots, which lie in one free block, were unmapped: the slots become a hole, merged with
  // its neighbours. O(log blocks + slots).
  void Evict(const SlotRun& slots);
  // These idle slots, of one chunk, are from now on the last to be looked at when idle ones are wanted. The device must
  // be known to be done with them. O(slots).
  void Defer(const SlotRun& chunk);
  // The chunk at `range` was pinned and is not any more: if it is free it falls idle, as if freed in `epoch`. Returns
  // how many slots did. O(slots).
  uint64_t Unpinned(AddressRange range, uint64_t epoch);
  // Slots inside one hole are lost for good: something is mapped there that could not be unmapped. O(log holes).
  void Quarantine(AddressRange slots);

  [[nodiscard]] AddressRange range() const { return range_; }
  [[nodiscard]] Bytes slot_size() const { return slot_size_; }
  [[nodiscard]] const Reservation& reservation() const { return reservation_; }
  [[nodiscard]] StreamHeap* heap() const { return heap_; }
  [[nodiscard]] const FreeIndex& free_index() const { return free_index_; }
  // The holes by address.
  [[nodiscard]] const absl::btree_map<DeviceAddress, Block*>& holes() const { return holes_; }
  [[nodiscard]] const Block* first_block() const { return first_; }
  [[nodiscard]] Block* first_block() { return first_; }
  // Nothing is mapped and nothing handed out.
  [[nodiscard]] bool IsEmpty() const { return first_->next == nullptr && first_->state == BlockState::kHole; }
  // Nothing is in use, pending or quarantined, whether or not memory is mapped. O(blocks).
  [[nodiscard]] bool IsUnused() const;
  // The block that holds an address of the range. O(blocks).
  [[nodiscard]] const Block* Find(DeviceAddress address) const;

  // Slots.
  [[nodiscard]] uint64_t SlotOf(DeviceAddress address) const {
    // Most slot sizes are powers of two, and a division takes longer than all the rest.
    const uint64_t part = (address - range_.begin).count() >> slot_shift_;
    return slot_odd_ == 1 ? part : part / slot_odd_;
  }
  [[nodiscard]] DeviceAddress AddressOf(uint64_t slot) const { return range_.begin + slot_size_ * slot; }
  // The first slot boundary at or above an address of the range, and the last at or below it.
  [[nodiscard]] DeviceAddress SlotCeil(DeviceAddress address) const {
    return range_.begin + RoundUp(address - range_.begin, slot_size_);
  }
  [[nodiscard]] DeviceAddress SlotFloor(DeviceAddress address) const {
    return range_.begin + RoundDown(address - range_.begin, slot_size_);
  }
  // None where the slot is not mapped.
  [[nodiscard]] ChunkId chunk(uint64_t slot) const { return slot < slots_.size() ? slots_[slot].chunk : ChunkId(); }
  // The slots of the chunk that covers a mapped slot.
  [[nodiscard]] SlotRun ChunkAt(uint64_t slot) const {
    return SlotRun{const_cast<Segment*>(this), slot - slots_[slot].place, slots_[slot].chunk_slots};
  }
  // How many of these slots, which are in a hole, had a chunk that was taken away.
  [[nodiscard]] uint64_t EvictedSlots(const SlotRun& slots) const;
  // The number of the free at which the slot became free; 0 if it is not free.
  [[nodiscard]] uint64_t stamp(uint64_t slot) const { return slot < slots_.size() ? slots_[slot].stamp : 0; }
  // The first of these slots, all of which were mapped once, that has the stamp, or that has not; `end` if there is
  // none.
  [[nodiscard]] uint64_t FindStamp(uint64_t stamp, uint64_t first, uint64_t end) const {
    while (first < end && slots_[first].stamp != stamp) ++first;
    return first;
  }
  [[nodiscard]] uint64_t FindOtherStamp(uint64_t stamp, uint64_t first, uint64_t end) const {
    while (first < end && slots_[first].stamp == stamp) ++first;
    return first;
  }

  // Sums over the blocks or slots. O(blocks or slots); for tests and error messages.
  [[nodiscard]] Bytes BytesIn(BlockState state) const;
  [[nodiscard]] uint64_t MappedSlots() const;
  [[nodiscard]] uint64_t IdleSlots() const;
  [[nodiscard]] uint64_t PinnedSlots() const;
  // The maximal ranges with memory behind them. O(blocks).
  [[nodiscard]] std::vector<AddressRange> MappedRuns() const;

  // OK, or INTERNAL naming the first inconsistency, the free index and idle queue apart. O(blocks + slots).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Slot {
    ChunkId chunk;
    uint8_t place = 0;        // in its chunk
    uint8_t chunk_slots = 0;  // of its chunk
    bool evicted = false;     // had a chunk before, and has none
    uint64_t stamp = 0;
    // The free block of a slot or more that begins in this one, of which there can be only one; else whatever did
    // before. Free slots of different free blocks are never neighbours, because what lies between the blocks lies in no
    // free slot: going down from any free slot leads there.
    Block* block = nullptr;
  };

  // False: no chunk lies wholly in there. Most blocks are small, and need no look at the slots.
  [[nodiscard]] bool MayHoldChunk(const Block* block) const { return block->size >= slot_size_; }
  [[nodiscard]] bool IsIdle(const Slot& slot) const { return slot.stamp != 0 && !pins_.IsPinned(slot.chunk); }
  Block* HoleAt(DeviceAddress address) const;
  Block* FreeBlockOfIdle(uint64_t slot) const;
  // The chunks that lie in `part` wholly, as slots; `touched` is a mapped part of it that each of them touches.
  SlotRun WholeChunks(AddressRange part, AddressRange touched) const;
  // Puts slots that were freed into the idle queue: all of them, or those that are not pinned. Returns how many.
  uint64_t PushIdle(const SlotRun& slots, FreeStamp stamp);
  uint64_t PushUnpinned(const SlotRun& slots, FreeStamp stamp);
  // Whether a slot has no chunk, or continues or begins its own as the slots beside it say.
  bool FollowsInChunk(uint64_t slot) const;
  // Puts a block into, or takes it out of, what its state says finds it.
  void IndexFree(Block* block);
  void Index(Block* block);
  void Unindex(Block* block);
  // Cuts `part` out of a free block or a hole, gives it another state, and merges it with neighbours of that state
  // where such blocks merge. `block` then is the block that holds the part; those that it merged with are gone.
  void Convert(Block* block, AddressRange part, BlockState state);
  // Links a new block of `block`'s state into the list, before or after it.
  Block* InsertBefore(Block* block, Bytes size);
  Block* InsertAfter(Block* block, Bytes size);
  // A block takes over what its neighbour has; the neighbour is gone.
  void AbsorbPrev(Block* block);
  void AbsorbNext(Block* block);

  const AddressRange range_;
  const Bytes slot_size_;
  const int slot_shift_;  // slot_size_ is 2^slot_shift_ times slot_odd_
  const uint64_t slot_odd_;
  const Reservation& reservation_;
  StreamHeap* const heap_;
  FreeIndex& free_index_;
  IdleQueue& idle_queue_;
  BlockArena& arena_;
  const PinTable& pins_;
  PoolFigures& figures_;  // counts the chunks mapped here, and the idle ones
  Block* first_;
  absl::btree_map<DeviceAddress, Block*> holes_;
  std::vector<Slot> slots_;  // up to the highest slot that was ever mapped
};

[[nodiscard]] inline AddressRange RangeOf(const SlotRun& slots) {
  return {slots.segment->AddressOf(slots.first), slots.segment->slot_size() * slots.count};
}

}  // namespace expanse

#endif  // EXPANSE_CORE_SEGMENT_H_

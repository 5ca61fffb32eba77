// A block: one piece of a segment's addresses, and the node of the segment's address-ordered list.

#ifndef EXPANSE_CORE_BLOCK_H_
#define EXPANSE_CORE_BLOCK_H_

#include <cstdint>
#include <deque>

#include "vmm/units.h"

namespace expanse {

class Segment;

enum class BlockState : uint8_t {
  kHole,         // no physical memory behind it; made of whole slots
  kFree,         // mapped, in the free index
  kUsed,         // handed out
  kPending,      // freed by the user, but another stream may still use it
  kQuarantined,  // lost to a failed undo; never handed out, mapped or merged again
};

// Two neighbours of the same mergeable state never stay apart. Blocks belong to a BlockArena, are linked by their
// segment, and are guarded by the allocator's lock. A block fills one cache line of 64 bytes: what the hot path reads
// of a block costs one miss.
struct alignas(64) Block {
  Segment* segment = nullptr;
  Block* prev = nullptr;  // the block that ends where this one begins, or null at the segment's begin
  Block* next = nullptr;
  DeviceAddress begin;
  Bytes size;
  // Links of the free index, while free.
  Block* smaller = nullptr;
  Block* larger = nullptr;
  uint32_t priority = 0;
  // While used or pending: by how much the size was rounded up, less than 512 bytes.
  uint16_t padding = 0;
  BlockState state = BlockState::kHole;
  bool has_users = false;  // RecordUse named other streams

  // What the user asked for, while used or pending; else 0.
  [[nodiscard]] Bytes requested() const {
    return state == BlockState::kUsed || state == BlockState::kPending ? size - Bytes(padding) : Bytes();
  }
  [[nodiscard]] DeviceAddress end() const { return begin + size; }
  [[nodiscard]] AddressRange range() const { return {begin, size}; }
};
static_assert(sizeof(Block) == 64, "a cache line");

// Makes and recycles blocks, so that splitting and merging cost no trip to the host's allocator. Addresses of blocks
// are stable until they are given back. Guarded by the allocator's lock; every operation is O(1).
class BlockArena {
 public:
  // One with no more than the default values.
  [[nodiscard]] Block* Make() {
    ++in_use_;
    if (recycled_ == nullptr) return &blocks_.emplace_back();
    Block* block = recycled_;
    recycled_ = block->next;
    *block = Block();
    return block;
  }
  void Recycle(Block* block) {
    --in_use_;
    block->segment = nullptr;
    block->next = recycled_;
    recycled_ = block;
  }
  // Blocks that were made and not given back.
  [[nodiscard]] uint64_t in_use() const { return in_use_; }

 private:
  std::deque<Block> blocks_;
  Block* recycled_ = nullptr;  // the one that was recycled last; the others follow as `next`
  uint64_t in_use_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_BLOCK_H_

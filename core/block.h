// A block: one piece of a segment's addresses, and the node of the segment's address-ordered list.

#ifndef EXPANSE_CORE_BLOCK_H_
#define EXPANSE_CORE_BLOCK_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "vmm/units.h"

namespace expanse {

class Segment;
class StreamState;

enum class BlockState : uint8_t {
  kHole,         // no physical memory behind it; made of whole slots
  kFree,         // mapped, in the free index
  kUsed,         // handed out
  kPending,      // freed by the user, but another stream may still use it
  kQuarantined,  // lost to a failed undo; never handed out, mapped or merged again
};

// Two neighbours of the same mergeable state never stay apart. Blocks belong to a BlockArena, are linked by their
// segment, and are guarded by the allocator's lock.
struct Block {
  Segment* segment = nullptr;
  Block* prev = nullptr;  // the block that ends where this one begins, or null at the segment's begin
  Block* next = nullptr;
  DeviceAddress begin;
  Bytes size;
  BlockState state = BlockState::kHole;
  Bytes requested;  // what the user asked for, while used or pending
  // Other streams named by RecordUse, each once. Null for the many blocks that have none.
  std::unique_ptr<std::vector<std::shared_ptr<StreamState>>> users;

  [[nodiscard]] DeviceAddress end() const { return begin + size; }
  [[nodiscard]] AddressRange range() const { return {begin, size}; }
};

// Makes and recycles blocks, so that splitting and merging cost no trip to the host's allocator. Addresses of blocks
// are stable until they are given back. Guarded by the allocator's lock; every operation is O(1).
class BlockArena {
 public:
  [[nodiscard]] Block* Make() {
    if (recycled_.empty()) return &blocks_.emplace_back();
    Block* block = recycled_.back();
    recycled_.pop_back();
    return block;
  }
  void Recycle(Block* block) {
    *block = Block();
    recycled_.push_back(block);
  }
  // Blocks that were made and not given back.
  [[nodiscard]] uint64_t in_use() const { return blocks_.size() - recycled_.size(); }

 private:
  std::deque<Block> blocks_;
  std::vector<Block*> recycled_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_BLOCK_H_

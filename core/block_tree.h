// Free blocks in the order of size and address.

#ifndef EXPANSE_CORE_BLOCK_TREE_H_
#define EXPANSE_CORE_BLOCK_TREE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/block.h"
#include "vmm/units.h"

namespace expanse {

// A treap: a search tree in which no block has a lower priority than those below it. Priorities are hashes of
// addresses, which is what keeps the tree flat whatever the order of insertion (Aragon and Seidel, "Randomized search
// trees"). The links lie in the blocks, so that nothing is allocated, and what is looked at is what will be handed out.
//
// Invariants: in-order, sizes and then addresses increase; every block's priority is at least those of its children.
// Guarded by the allocator's lock. Every operation but ForEach and CheckInvariants is O(log blocks), expected.
class BlockTree {
 public:
  [[nodiscard]] bool empty() const { return root_ == nullptr; }
  void Insert(Block* block);
  // `block` is in the tree, and has the size and address it was inserted with.
  void Erase(const Block* block);

  // The smallest block of at least `size`, of several the one at the lowest address; null if there is none.
  [[nodiscard]] Block* BestFit(Bytes size) const;
  // The first and the last in the order; the tree is not empty.
  [[nodiscard]] Block* First() const;
  [[nodiscard]] Block* Last() const;
  [[nodiscard]] bool Contains(const Block* block) const;
  // In order. O(blocks).
  void ForEach(absl::FunctionRef<void(const Block&)> visit) const { ForEachBelow(root_, visit); }

  // OK, or INTERNAL naming the first block that is out of place. O(blocks).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  static bool Precedes(const Block* a, const Block* b) {
    return a->size != b->size ? a->size < b->size : a->begin < b->begin;
  }
  // Neighbouring addresses must not get similar priorities, hence two rounds.
  static uint32_t PriorityOf(DeviceAddress begin) {
    uint64_t mixed = begin.value() * 0x9E37'79B9'7F4A'7C15;
    mixed = (mixed ^ (mixed >> 32)) * 0xBF58'476D'1CE4'E5B9;
    return static_cast<uint32_t>(mixed >> 32);
  }
  static void ForEachBelow(const Block* root, absl::FunctionRef<void(const Block&)> visit);

  Block* root_ = nullptr;
};

inline void BlockTree::Insert(Block* block) {
  block->priority = PriorityOf(block->begin);
  Block** link = &root_;
  while (*link != nullptr && (*link)->priority >= block->priority) {
    link = Precedes(*link, block) ? &(*link)->larger : &(*link)->smaller;
  }
  // The block takes the place of that subtree, which is split into what comes before it and after it.
  Block* rest = *link;
  *link = block;
  Block** before = &block->smaller;
  Block** after = &block->larger;
  while (rest != nullptr) {
    if (Precedes(rest, block)) {
      *before = rest;
      before = &rest->larger;
      rest = rest->larger;
    } else {
      *after = rest;
      after = &rest->smaller;
      rest = rest->smaller;
    }
  }
  *before = nullptr;
  *after = nullptr;
}

inline void BlockTree::Erase(const Block* block) {
  Block** link = &root_;
  while (*link != block) link = Precedes(*link, block) ? &(*link)->larger : &(*link)->smaller;
  // Its subtrees are joined in its place.
  Block* before = block->smaller;
  Block* after = block->larger;
  while (before != nullptr && after != nullptr) {
    if (before->priority >= after->priority) {
      *link = before;
      link = &before->larger;
      before = before->larger;
    } else {
      *link = after;
      link = &after->smaller;
      after = after->smaller;
    }
  }
  *link = before != nullptr ? before : after;
}

inline Block* BlockTree::BestFit(Bytes size) const {
  Block* best = nullptr;
  for (Block* block = root_; block != nullptr;) {
    if (block->size < size) {
      block = block->larger;
    } else {
      best = block;
      block = block->smaller;
    }
  }
  return best;
}

inline Block* BlockTree::First() const {
  Block* block = root_;
  while (block->smaller != nullptr) block = block->smaller;
  return block;
}

}  // namespace expanse

#endif  // EXPANSE_CORE_BLOCK_TREE_H_

#include "bench/allocators/block_pool.h"

#include <iterator>

namespace expanse::bench {
namespace {

// How large a free block could become by mapping what lies behind it.
Bytes GrowableSize(const Block& block) {
  const Block* next = block.next;
  return next != nullptr && next->state == BlockState::kUnmapped ? block.size + next->size : block.size;
}

}  // namespace

Block* BlockPool::BestFit(Bytes size) const {
  auto it = free_.lower_bound(size);
  return it == free_.end() ? nullptr : *it;
}

Block* BlockPool::BestFitKeepingGrowable(Bytes size) const {
  auto it = free_.lower_bound(size);
  if (it == free_.end()) return nullptr;
  for (auto next = std::next(it); next != free_.end() && GrowableSize(**next) < GrowableSize(**it); ++next) it = next;
  return *it;
}

void BlockPool::Insert(Block& block) {
  if (block.state == BlockState::kUnmapped) {
    unmapped_.insert(&block);
  } else {
    free_.insert(&block);
  }
}

void BlockPool::Remove(Block& block) {
  if (block.state == BlockState::kUnmapped) {
    unmapped_.erase(&block);
  } else {
    free_.erase(&block);
  }
}

Block& BlockPool::Coalesce(Block& block, BlockState state) {
  block.state = state;
  Block* whole = &block;
  if (Block* prev = block.prev; prev != nullptr && prev->state == state) {
    Remove(*prev);
    AbsorbNext(*prev);
    whole = prev;
  }
  if (Block* next = whole->next; next != nullptr && next->state == state) {
    Remove(*next);
    AbsorbNext(*whole);
  }
  Insert(*whole);
  return *whole;
}

}  // namespace expanse::bench

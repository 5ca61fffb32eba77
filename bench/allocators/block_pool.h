// The cached blocks of one stream and size class.

#ifndef EXPANSE_BENCH_ALLOCATORS_BLOCK_POOL_H_
#define EXPANSE_BENCH_ALLOCATORS_BLOCK_POOL_H_

#include <set>

#include "bench/allocators/block.h"
#include "vmm/units.h"

namespace expanse::bench {

// Files free blocks by size and address, and unmapped ones by address. PyTorch keeps one such set for all streams with
// the stream first in the order; a pool for each stream is the same order without the comparison.
//
// Ties in size go to the lowest device address, so a run depends on nothing but the addresses that the driver gives.
// Not thread-safe: the allocator's lock guards it.
class BlockPool {
 public:
  struct BySize {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->address < b->address;
    }
    bool operator()(const Block* a, Bytes size) const { return a->size < size; }
  };
  struct ByAddress {
    bool operator()(const Block* a, const Block* b) const { return a->address < b->address; }
  };
  using FreeSet = std::set<Block*, BySize>;
  using UnmappedSet = std::set<Block*, ByAddress>;

  BlockPool(StreamHandle stream, bool small) : stream_(stream), small_(small) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  [[nodiscard]] StreamHandle stream() const { return stream_; }
  [[nodiscard]] bool small() const { return small_; }
  [[nodiscard]] const FreeSet& free() const { return free_; }
  [[nodiscard]] const UnmappedSet& unmapped() const { return unmapped_; }

  // The smallest free block of at least `size`, the lowest among equals; null if there is none. It stays filed.
  // O(log free blocks).
  [[nodiscard]] Block* BestFit(Bytes size) const;
  // The same, but walks on to larger blocks for as long as the next one could grow to less than this one could, the
  // unmapped addresses behind each counted in: PyTorch keeps the blocks that can grow for requests that need it.
  [[nodiscard]] Block* BestFitKeepingGrowable(Bytes size) const;

  // Files a free or unmapped block as it is, or takes it out. Its size and address must not change while filed.
  void Insert(Block& block);
  void Remove(Block& block);

  // Makes a block that is not filed free or unmapped, joins it with its neighbours of that state, and files the whole,
  // which is returned.
  Block& Coalesce(Block& block, BlockState state);

 private:
  const StreamHandle stream_;
  const bool small_;
  FreeSet free_;
  UnmappedSet unmapped_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_BLOCK_POOL_H_

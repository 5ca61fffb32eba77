// Which requests share a segment set, and how large the chunks of a set may be.

#ifndef EXPANSE_CORE_SIZE_CLASS_H_
#define EXPANSE_CORE_SIZE_CLASS_H_

#include <algorithm>
#include <cstdint>

#include "absl/numeric/bits.h"
#include "vmm/units.h"

namespace expanse {

// Blocks of a class are packed together, apart from those of other classes. Small blocks, which live long or come and
// go often, are always apart, so that they do not split the ranges that large ones need. Chunks move between classes as
// they do between streams.
//
// Larger blocks share one class while memory is plentiful: what is free in one place then serves all of them, and less
// is held. Once memory is nearly full they are kept apart by size: blocks that are alike leave fewer chunks in partial
// use, which decides how much is needed at least, and find their places again. On a small device that does not pay for
// the ends of more segments. docs/design.md has the measurements.
inline constexpr int kSizeClassCount = 4;
inline constexpr Bytes kLargestOfClass[kSizeClassCount - 1] = {MiB(1), MiB(16), MiB(64)};

// Memory is plentiful while more than this part of the limit is left, and always where the limit is small.
inline constexpr uint64_t kPlentifulPart = 8;
inline constexpr Bytes kSmallLimit = GiB(8);
[[nodiscard]] constexpr bool IsPlentiful(Bytes held, Bytes left) {
  const Bytes limit = held + left;
  return left > limit / kPlentifulPart || limit < kSmallLimit;
}

// The class of a request of `size` bytes, from 0 to kSizeClassCount - 1. O(1).
[[nodiscard]] constexpr int SizeClassOf(Bytes size, bool plentiful) {
  int size_class = 0;
  while (size_class < kSizeClassCount - 1 && size > kLargestOfClass[size_class]) ++size_class;
  return plentiful ? std::min(size_class, 1) : size_class;
}

// A large chunk costs the driver hardly more than a small one, but while any part of it is used, what is free in it
// serves nobody elsewhere. So a chunk that is created for a large block is no more than one of the first two parts of
// what is held already and of the block, and no more than the third of what the limit leaves: memory that is nearly
// full is made of small chunks. docs/design.md has the measurements.
inline constexpr uint64_t kChunksOfHeld = 32;
inline constexpr uint64_t kChunksOfBlock = 4;
inline constexpr uint64_t kChunksOfLeft = 3072;
inline constexpr uint64_t kLargestChunkSlots = 16;

// How many slots a chunk that is created for a block may cover, a power of two. O(1).
[[nodiscard]] constexpr uint64_t LargestChunk(Bytes block, Bytes held, Bytes left, Bytes slot_size) {
  if (block <= kLargestOfClass[0]) return 1;
  const Bytes large = std::min(std::max(held / kChunksOfHeld, block / kChunksOfBlock), left / kChunksOfLeft);
  return absl::bit_floor(std::clamp<uint64_t>(large / slot_size, 1, kLargestChunkSlots));
}

// Memory that is moved again and again is better moved in larger pieces. How large follows from what the workload
// leaves: `left` is what the limit exceeds the most that was ever in use by.
inline constexpr uint64_t kMergedOfLeft = 224;

// How many slots a chunk may cover that takes the place of smaller ones for a block, a power of two. O(1).
[[nodiscard]] constexpr uint64_t MergedChunk(Bytes block, Bytes left, Bytes slot_size) {
  const Bytes large = std::min(block / kChunksOfBlock, left / kMergedOfLeft);
  return absl::bit_floor(std::clamp<uint64_t>(large / slot_size, 1, kLargestChunkSlots));
}

}  // namespace expanse

#endif  // EXPANSE_CORE_SIZE_CLASS_H_

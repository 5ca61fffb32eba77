// Which requests share a segment set, and how large the chunks of a set may be.

#ifndef EXPANSE_CORE_SIZE_CLASS_H_
#define EXPANSE_CORE_SIZE_CLASS_H_

#include <algorithm>
#include <cstdint>

#include "absl/numeric/bits.h"
#include "vmm/units.h"

namespace expanse {

// Blocks of a class are packed together, apart from those of other classes: small blocks, which live long or come and
// go often, then do not split the ranges that large ones need. Chunks move between classes as they do between streams.
inline constexpr int kSizeClassCount = 2;

// The class of a request of `size` bytes, from 0 to kSizeClassCount - 1. O(1).
[[nodiscard]] constexpr int SizeClassOf(Bytes size) { return size <= MiB(1) ? 0 : 1; }

// A large chunk costs the driver hardly more than a small one, but while any part of it is used, what is free in it
// serves nobody elsewhere. So no chunk that is created for large blocks is more than this part of what is held already,
// nor more than this part of what the limit leaves: memory that is nearly full is made of small chunks. docs/design.md
// has the measurements.
inline constexpr uint64_t kChunksOfHeld = 32;
inline constexpr uint64_t kChunksOfLeft = 8192;
inline constexpr uint64_t kLargestChunkSlots = 16;

// How many slots a chunk that is created for the class may cover, a power of two. O(1).
[[nodiscard]] constexpr uint64_t LargestChunk(int size_class, Bytes held, Bytes left, Bytes slot_size) {
  if (size_class == 0) return 1;
  const uint64_t slots = std::min(held / slot_size / kChunksOfHeld, left / slot_size / kChunksOfLeft);
  return absl::bit_floor(std::clamp<uint64_t>(slots, 1, kLargestChunkSlots));
}

}  // namespace expanse

#endif  // EXPANSE_CORE_SIZE_CLASS_H_

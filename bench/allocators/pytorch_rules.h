// The constants and size rules that PyTorch's CUDA allocator applies, with and without expandable segments.
//
// Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.6 (kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer,
// kMinLargeAlloc, kRoundLarge; round_size, get_allocation_size, should_split), with every setting of
// PYTORCH_CUDA_ALLOC_CONF at its default: no size divisions, no max_split_size, no garbage collection threshold.

#ifndef EXPANSE_BENCH_ALLOCATORS_PYTORCH_RULES_H_
#define EXPANSE_BENCH_ALLOCATORS_PYTORCH_RULES_H_

#include "vmm/units.h"

namespace expanse::bench::pytorch {

inline constexpr Bytes kMinBlock = Bytes(512);       // every block is a multiple of this
inline constexpr Bytes kLargestSmallBlock = MiB(1);  // up to here blocks come from the small pool
inline constexpr Bytes kSmallSegment = MiB(2);       // what the small pool takes from the driver at a time
inline constexpr Bytes kLargeSegment = MiB(20);      // what the large pool takes for requests below kMinOwnSegment
inline constexpr Bytes kMinOwnSegment = MiB(10);     // from here a request gets a segment cut for it
inline constexpr Bytes kSegmentRounding = MiB(2);    // to a multiple of this
inline constexpr Bytes kLargestRequest = Bytes(uint64_t{1} << 60);  // beyond it a request is refused unseen

// For sizes from 1 byte to kLargestRequest.
constexpr Bytes RoundRequest(Bytes size) { return RoundUp(size, kMinBlock); }

// `rounded` is what RoundRequest returned, here and below.
constexpr bool IsSmall(Bytes rounded) { return rounded <= kLargestSmallBlock; }

// What is asked of the driver when no cached block fits.
constexpr Bytes SegmentSize(Bytes rounded) {
  if (IsSmall(rounded)) return kSmallSegment;
  return rounded < kMinOwnSegment ? kLargeSegment : RoundUp(rounded, kSegmentRounding);
}

// The size of a physical handle in an expandable segment.
constexpr Bytes ExpandableChunk(bool small) { return small ? kSmallSegment : kLargeSegment; }

}  // namespace expanse::bench::pytorch

#endif  // EXPANSE_BENCH_ALLOCATORS_PYTORCH_RULES_H_

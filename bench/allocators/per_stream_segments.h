// `per-stream-segments`: PyTorch's policy with expandable_segments on.

#ifndef EXPANSE_BENCH_ALLOCATORS_PER_STREAM_SEGMENTS_H_
#define EXPANSE_BENCH_ALLOCATORS_PER_STREAM_SEGMENTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/allocators/expandable_segment.h"
#include "bench/allocators/pytorch_allocator.h"

namespace expanse::bench {

// One segment of 9/8 of the device's memory in addresses for each stream and size class (further ones once it is cut up
// too much), backed by chunks of 2 MiB for small and 20 MiB for large requests. Growth maps what is missing at the
// lowest unmapped range that has room, counting the free block before it in. Every block is split to size. Of the
// cached blocks that fit, those that cannot grow are taken first. When memory is short, every wholly free chunk is
// unmapped and released, however little is missing.
//
// Source: get_free_block, find_expandable_block, map_block, try_allocate_expandable_block, unmap_block, release_blocks
// and release_expandable_segment in c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.6. A request for which several
// unmapped ranges are mapped in turn keeps what it got when it fails, as a cached block. Two things are different: a
// request larger than a segment is refused before chunks are created for it, and the limit holds to the byte, where
// PyTorch may exceed it by less than a chunk.
class PerStreamSegments final : public PytorchAllocator {
 public:
  PerStreamSegments(std::unique_ptr<DeviceContext> context, DeviceOrdinal device, std::optional<Bytes> limit);
  // Waits for all queued work of the context.
  ~PerStreamSegments() override;

  [[nodiscard]] AllocatorFigures figures() const override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Block* FindCached(const BlockPool& pool, Bytes size) const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool SplitsOff(const BlockPool& pool, Bytes remainder) const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> Grow(BlockPool& pool, Bytes size) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReleaseIdle(BlockPool& pool) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Bytes> CheckSegment(const BlockList& segment) const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // An unmapped block, or the free one before it, from where free and unmapped blocks hold `size` bytes in a row.
  absl::StatusOr<Block*> FindRoom(BlockPool& pool, Bytes size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> CreateSegment(BlockPool& pool, Bytes size, Bytes chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Maps the first `size` bytes of an unmapped block, or up to a chunk more. Returns the free block that they joined.
  absl::StatusOr<Block*> MapFront(Block& block, Bytes size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unmaps the whole chunks inside a free block, and gives the segment up if nothing of it is mapped any more.
  absl::Status UnmapInside(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CloseSegment(Block& whole) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const DeviceOrdinal device_;
  std::map<DeviceAddress, std::unique_ptr<ExpandableSegment>> expandable_ ABSL_GUARDED_BY(mu_);
  PeakCounter address_space_ ABSL_GUARDED_BY(mu_);
  uint64_t chunks_created_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_PER_STREAM_SEGMENTS_H_

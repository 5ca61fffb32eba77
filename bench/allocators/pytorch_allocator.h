// What PyTorch's allocator does alike with and without expandable segments.

#ifndef EXPANSE_BENCH_ALLOCATORS_PYTORCH_ALLOCATOR_H_
#define EXPANSE_BENCH_ALLOCATORS_PYTORCH_ALLOCATOR_H_

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/allocators/block.h"
#include "bench/allocators/block_pool.h"
#include "bench/allocators/deferred_frees.h"
#include "bench/allocators/device_context.h"
#include "bench/allocators/figure_book.h"
#include "vmm/mutex.h"
#include "vmm/units.h"

namespace expanse::bench {

// Two pools of cached blocks for each stream; best fit; split at the front; a freed block joins its free neighbours at
// once, or, where other streams used it, once their events are complete, which is looked into at the next request. A
// request that no cached block fits gets new memory; when the driver has none, or the limit is reached, all events are
// waited for, all idle memory goes back, and it is tried once more. A derived class says what a segment is.
//
// Source: DeviceCachingAllocator::malloc, free, get_free_block, alloc_found_block, free_block, try_merge_blocks,
// recordStream, insert_events, process_events and release_cached_blocks in c10/cuda/CUDACachingAllocator.cpp, PyTorch
// 2.6. Left out: graph capture, private pools, callbacks, and settings that are off by default. Kept, although it
// looks like an oversight: after the events were waited for, the cache is not searched again before new memory is asked
// for. Added: a free that names another stream than the block's counts as a use there, and after any failing driver
// call the books are right.
//
// Invariants: the blocks of each segment cover it without gaps; no two neighbours are both free or both unmapped; a
// free or unmapped block is filed in its segment's pool, and no other is; a live block is in `live_`; a pending one has
// events outstanding; the figures are the sums over the blocks.
//
// One lock for everything, held during driver calls, as in PyTorch. Streams must outlive the allocator.
class PytorchAllocator : public BenchAllocator {
 public:
  [[nodiscard]] absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream) final ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] absl::Status Free(DeviceAddress address, StreamHandle stream) final ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] absl::Status RecordUse(DeviceAddress address, StreamHandle stream) final ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] AllocatorFigures figures() const override ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] absl::Status CheckInvariants() const final ABSL_LOCKS_EXCLUDED(mu_);

 protected:
  struct StreamPools {
    explicit StreamPools(StreamHandle stream) : small(stream, true), large(stream, false) {}
    BlockPool small;
    BlockPool large;
  };

  PytorchAllocator(std::unique_ptr<DeviceContext> context, std::optional<Bytes> limit);

  // The cached block that serves `size`, still filed; null if none does.
  virtual Block* FindCached(const BlockPool& pool, Bytes size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Whether what is left behind a request becomes a block of its own.
  virtual bool SplitsOff(const BlockPool& pool, Bytes remainder) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Takes memory from the driver for `size`; the limit was checked. The block is free and filed. RESOURCE_EXHAUSTED if
  // the driver has none.
  virtual absl::StatusOr<Block*> Grow(BlockPool& pool, Bytes size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Gives every idle part of one pool's memory back to the driver.
  virtual absl::Status ReleaseIdle(BlockPool& pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // The physical memory behind a segment, or what is inconsistent about it that the blocks alone do not show.
  virtual absl::StatusOr<Bytes> CheckSegment(const BlockList& segment) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;

  [[nodiscard]] BlockPool& PoolFor(StreamHandle stream, bool small) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds a segment, its single block free or unmapped and filed.
  Block& AddSegment(AddressRange range, BlockPool& pool, ExpandableSegment* expandable, BlockState state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets a segment whose single block is filed nowhere.
  void RemoveSegment(DeviceAddress begin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // OK, or RESOURCE_EXHAUSTED where `more` would exceed the limit.
  [[nodiscard]] absl::Status CheckLimit(Bytes more) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  const std::unique_ptr<DeviceContext> context_;
  FigureBook figures_ ABSL_GUARDED_BY(mu_);
  std::map<DeviceAddress, BlockList> segments_ ABSL_GUARDED_BY(mu_);  // by first address

 private:
  absl::StatusOr<Block*> GrowOrReclaim(BlockPool& pool, Bytes size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> GrowWithinLimit(BlockPool& pool, Bytes size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReleaseAllIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishPending(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> FindLive(DeviceAddress address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::optional<Bytes> limit_;
  std::vector<std::unique_ptr<StreamPools>> streams_ ABSL_GUARDED_BY(mu_);  // in order of first use
  absl::flat_hash_map<StreamHandle, StreamPools*> pools_by_stream_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<DeviceAddress, Block*> live_ ABSL_GUARDED_BY(mu_);
  DeferredFrees deferred_ ABSL_GUARDED_BY(mu_);
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_PYTORCH_ALLOCATOR_H_

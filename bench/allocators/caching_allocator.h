// `caching` and `preallocated`: PyTorch's native policy.

#ifndef EXPANSE_BENCH_ALLOCATORS_CACHING_ALLOCATOR_H_
#define EXPANSE_BENCH_ALLOCATORS_CACHING_ALLOCATOR_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/allocators/pytorch_allocator.h"

namespace expanse::bench {

// A segment is one driver allocation: 2 MiB for small requests, 20 MiB for those below 10 MiB, else the request rounded
// up to 2 MiB. It goes back only as a whole. A large block is split where more than 1 MiB would be left, a small one
// where anything would.
//
// Source: alloc_block, should_split and release_blocks in c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.6, with
// expandable_segments off, which is its default.
class CachingAllocator final : public PytorchAllocator {
 public:
  CachingAllocator(std::unique_ptr<DeviceContext> context, std::optional<Bytes> limit);
  // The driver waits for work on a segment before it takes it back.
  ~CachingAllocator() override;

  // Fills the cache of the default stream with one free segment of `size`, as allocating and freeing a block of that
  // size first thing would. The block belongs to that stream like any other: requests for other streams do not see it.
  //
  // Source: the training option pre_alloc_memory of PaddleNLP (pull request 8600) and its successors PaddleFormers and
  // ERNIEKit, which makes a tensor of so many GiB and drops it, so that all the cache is one block that coalesces.
  [[nodiscard]] absl::Status Preallocate(Bytes size) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Block* FindCached(const BlockPool& pool, Bytes size) const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool SplitsOff(const BlockPool& pool, Bytes remainder) const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> Grow(BlockPool& pool, Bytes size) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReleaseIdle(BlockPool& pool) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Bytes> CheckSegment(const BlockList& segment) const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_CACHING_ALLOCATOR_H_

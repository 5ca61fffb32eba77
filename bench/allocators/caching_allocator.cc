#include "bench/allocators/caching_allocator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/allocators/pytorch_rules.h"
#include "vmm/driver_call.h"

namespace expanse::bench {

CachingAllocator::CachingAllocator(std::unique_ptr<DeviceContext> context, std::optional<Bytes> limit)
    : PytorchAllocator(std::move(context), limit) {}

CachingAllocator::~CachingAllocator() {
  MutexLock lock(mu_);
  // There is nobody to tell that the driver refuses.
  (void)context_->MakeCurrent();
  for (const auto& [begin, segment] : segments_) (void)context_->driver().mem_free(begin.value());
}

absl::Status CachingAllocator::Preallocate(Bytes size) {
  if (size.is_zero() || size > pytorch::kLargestRequest) {
    return absl::InvalidArgumentError(absl::StrCat("a first block of ", ToString(size), ": expected at least 1 byte"));
  }
  const Bytes rounded = pytorch::RoundRequest(size);
  MutexLock lock(mu_);
  if (absl::Status status = context_->MakeCurrent(); !status.ok()) return status;
  if (absl::Status status = CheckLimit(pytorch::SegmentSize(rounded)); !status.ok()) return status;
  return Grow(PoolFor(StreamHandle(), pytorch::IsSmall(rounded)), rounded).status();
}

Block* CachingAllocator::FindCached(const BlockPool& pool, Bytes size) const { return pool.BestFit(size); }

bool CachingAllocator::SplitsOff(const BlockPool& pool, Bytes remainder) const {
  return pool.small() ? remainder >= pytorch::kMinBlock : remainder > pytorch::kLargestSmallBlock;
}

absl::StatusOr<Block*> CachingAllocator::Grow(BlockPool& pool, Bytes size) {
  const Bytes segment_size = pytorch::SegmentSize(size);
  abi::DevicePtr pointer = 0;
  absl::Status status = CallStatus(context_->driver(), context_->driver().mem_alloc(&pointer, segment_size.count()),
                                   EntryPoint::mem_alloc, "bytes=", segment_size.count());
  if (!status.ok()) return status;
  figures_.reserved.Add(segment_size);
  return &AddSegment({DeviceAddress(pointer), segment_size}, pool, nullptr, BlockState::kFree);
}

absl::Status CachingAllocator::ReleaseIdle(BlockPool& pool) {
  for (auto it = pool.free().begin(); it != pool.free().end();) {
    Block& block = **it;
    ++it;
    if (block.prev != nullptr || block.next != nullptr) continue;
    absl::Status status = CallStatus(context_->driver(), context_->driver().mem_free(block.address.value()),
                                     EntryPoint::mem_free, "address=0x", absl::Hex(block.address.value()));
    if (!status.ok()) return status;
    figures_.reserved.Subtract(block.size);
    pool.Remove(block);
    RemoveSegment(block.address);
  }
  return absl::OkStatus();
}

absl::StatusOr<Bytes> CachingAllocator::CheckSegment(const BlockList& segment) const {
  for (const Block* block = &segment.head(); block != nullptr; block = block->next) {
    if (block->state == BlockState::kUnmapped) return absl::InternalError("a driver allocation has an unmapped part");
  }
  return segment.range().size;
}

}  // namespace expanse::bench

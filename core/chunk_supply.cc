#include "core/chunk_supply.h"

#include <algorithm>
#include <limits>

namespace expanse {
namespace {

ChunkPoolOptions PoolOptions(Bytes limit) {
  ChunkPoolOptions options;
  options.limit = limit;
  options.max_chunks = ChunkCount(std::numeric_limits<uint32_t>::max());  // the budget, which can change, bounds it
  return options;
}

}  // namespace

ChunkSupply::ChunkSupply(const Device& device, Bytes chunk_size, Bytes limit, Budget& budget)
    : chunk_size_(chunk_size), budget_(budget), pool_(device, PoolOptions(limit)) {}

ChunkSupply::~ChunkSupply() { budget_.Give(pool_.chunks().count()); }

uint64_t ChunkSupply::Creatable() const {
  return std::min({pool_.bytes_left() / chunk_size_, pool_.chunks_left().count(), budget_.left()});
}

ChunkProgress ChunkSupply::Create(uint64_t count) {
  const uint64_t allowed = std::min(count, Creatable());
  if (!budget_.TryTake(allowed)) {
    return ChunkProgress{ChunkCount(), Bytes(), absl::ResourceExhaustedError("the process's handle budget is used up")};
  }
  const ChunkProgress progress = pool_.CreateUpTo(ChunkCount(allowed), chunk_size_);
  budget_.Give(allowed - progress.chunks.count());
  if (progress.chunks.count() > 0) refusal_age_ = 0;
  if (absl::IsResourceExhausted(progress.status)) {
    refusal_age_ = kRefusalAge;
    ++refusals_;
  }
  return progress;
}

ChunkProgress ChunkSupply::Release(uint64_t count) {
  const ChunkProgress progress = pool_.ReleaseSpare(chunk_size_ * count);
  budget_.Give(progress.chunks.count());
  if (progress.chunks.count() > 0) refusal_age_ = 0;
  return progress;
}

}  // namespace expanse

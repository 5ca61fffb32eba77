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

ChunkSupply::ChunkSupply(const Device& device, Bytes smallest, Bytes limit, Budget& budget)
    : smallest_(smallest), budget_(budget), pool_(device, PoolOptions(limit)) {}

ChunkSupply::~ChunkSupply() { budget_.Give(pool_.chunks().count()); }

uint64_t ChunkSupply::Creatable() const {
  return std::min({pool_.bytes_left() / smallest_, pool_.chunks_left().count(), budget_.left()});
}

absl::Status ChunkSupply::Create(Bytes size) {
  if (!budget_.TryTake(1)) return absl::ResourceExhaustedError("the process's handle budget is used up");
  const bool allowed = size <= pool_.bytes_left() && !pool_.chunks_left().is_zero();
  const absl::Status status = pool_.Create(ChunkCount(1), size);
  if (!status.ok()) budget_.Give(1);
  if (status.ok()) refusal_age_ = 0;
  if (allowed && size == smallest_ && absl::IsResourceExhausted(status)) {
    refusal_age_ = kRefusalAge;
    ++refusals_;
  }
  return status;
}

absl::Status ChunkSupply::ReleaseOne(Bytes size) {
  const absl::Status status = pool_.Release(pool_.FindSpare(size));
  if (!status.ok()) return status;
  budget_.Give(1);
  refusal_age_ = 0;
  return status;
}

ChunkProgress ChunkSupply::Release(Bytes wanted) {
  const ChunkProgress progress = pool_.ReleaseSpare(wanted);
  budget_.Give(progress.chunks.count());
  if (progress.chunks.count() > 0) refusal_age_ = 0;
  return progress;
}

}  // namespace expanse

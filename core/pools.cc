// The part of the allocator that makes, trims and ends private pools.

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/allocator_impl.h"
#include "core/utf8.h"

namespace expanse {

absl::StatusOr<PoolId> Allocator::Impl::CreatePool(const PoolOptions& options) {
  MutexLock lock(mu_);
  if (options.limit && *options.limit < supply_.smallest()) {
    return absl::InvalidArgumentError(absl::StrCat("the pool's limit is ", ToString(*options.limit),
                                                   ", expected at least one chunk of ", ToString(supply_.smallest())));
  }
  if (!IsUtf8(options.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pool's name '", absl::CHexEscape(options.name), "' is no UTF-8, expected text"));
  }
  const PoolId id = pools_.Create(options).id();
  const absl::Status status = ReserveForPool(**pools_.Find(id));
  if (!status.ok()) {
    pools_.TakeBack(id);
    return status;
  }
  UpdateFigures();
  return id;
}

absl::StatusOr<PoolStats> Allocator::Impl::GetPoolStats(PoolId id) const {
  MutexLock lock(mu_);
  const absl::StatusOr<PoolState*> pool = pools_.Find(id);
  if (!pool.ok()) return pool.status();
  PoolStats stats = (*pool)->figures().stats();
  if (const auto it = pool_addresses_.find(id); it != pool_addresses_.end()) stats.addresses = it->second->first();
  return stats;
}

absl::StatusOr<Bytes> Allocator::Impl::TrimPool(PoolId id, Bytes target) {
  MutexLock lock(mu_);
  const absl::StatusOr<PoolState*> pool = pools_.Find(id);
  if (!pool.ok()) return pool.status();
  const FigureCounter& reserved = (*pool)->figures().reserved;
  if (reserved.current() <= target) return Bytes();
  ChunkProgress trimmed;
  GiveBackIdle(reserved.current() - target, Idle{*pool}, trimmed);
  DropEmptySegments(/*of_live_streams=*/false);
  UpdateFigures();
  if (!trimmed.status.ok()) return trimmed.status;
  return trimmed.bytes;
}

absl::Status Allocator::Impl::RetirePool(PoolId id) {
  MutexLock lock(mu_);
  if (const absl::Status status = pools_.Retire(id); !status.ok()) return status;
  ReclaimRetiredPools();
  UpdateFigures();
  return absl::OkStatus();
}

// What the driver refuses is tried again the next time.
void Allocator::Impl::ReclaimRetiredPools() {
  if (pools_.retired() == 0) return;
  CompletionCheck others(events_, *device_);
  SettleComplete(others);
  for (const PoolState* pool : pools_.Pools()) {
    if (!pool->retired() || pool->figures().idle.current().is_zero()) continue;
    CompletionCheck completion(events_, *device_);
    (void)mover_.MakeSpare(pool->figures().idle.current(), {completion, pool});
  }
  DropEmptySegments(/*of_live_streams=*/false);
}

}  // namespace expanse

// The part of the allocator that gives memory back to the device.

#include <algorithm>

#include "core/allocator_impl.h"

namespace expanse {

absl::StatusOr<Bytes> Allocator::Impl::Trim(Bytes target) {
  MutexLock lock(mu_);
  const Bytes before = supply_.pool().bytes();
  const absl::Status status = TrimTo(target);
  if (!status.ok()) return status;
  return before - supply_.pool().bytes();
}

Bytes Allocator::Impl::GiveBackToOthers(Bytes wanted) {
  if (forked()) return Bytes();
  MutexLock lock(mu_);
  const Bytes before = supply_.pool().bytes();
  // What the driver refuses concerns whoever needs that memory here.
  (void)TrimTo(before - std::min(wanted, before));
  return before - supply_.pool().bytes();
}

absl::Status Allocator::Impl::TrimTo(Bytes target) {
  const Bytes before = supply_.pool().bytes();
  if (before <= target) return absl::OkStatus();
  absl::Status status = supply_.Release(before - target).status;
  if (supply_.pool().bytes() > target) {
    // Pending memory that all streams are done with is idle too. Settling it may close an epoch, hence two checks.
    CompletionCheck others(events_, *device_);
    for (Block* block : pending_queue_.TakeComplete(others)) SettlePending(block);
    status.Update(others.status());
    CompletionCheck completion(events_, *device_);
    const ChunkProgress unmapped = grower_.MakeSpare(supply_.pool().bytes() - target, nullptr, completion);
    status.Update(unmapped.status);
    status.Update(supply_.Release(unmapped.bytes).status);
    status.Update(completion.status());
  }
  DropEmptySegments(/*of_live_streams=*/false);
  UpdateFigures();
  (void)soft_limit_.Update(supply_.pool().bytes());  // it has only fallen
  return status;
}

}  // namespace expanse

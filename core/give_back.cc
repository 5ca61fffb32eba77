// The part of the allocator that gives memory back to the device.

#include <algorithm>

#include "core/allocator_impl.h"

namespace expanse {

absl::StatusOr<Bytes> Allocator::Impl::Trim(Bytes target, TrimMode mode) {
  MutexLock lock(mu_);
  ChunkProgress trimmed = TrimTo(target);
  // What other threads free meanwhile is waited for too, but not for ever.
  Climb climb(supply_.refusals());
  while (mode == TrimMode::kWait && trimmed.status.ok() && supply_.pool().bytes() > target) {
    const std::optional<HeldBack> oldest = OldestIncomplete(nullptr);
    if (!oldest || !climb.MayWaitFor(oldest->number, idle_queue_.newest())) break;
    trimmed.status = WaitFor(oldest->ticket);
    if (!trimmed.status.ok()) break;
    const ChunkProgress more = TrimTo(target);
    trimmed.bytes += more.bytes;
    trimmed.status = more.status;
  }
  if (!trimmed.status.ok()) return trimmed.status;
  return trimmed.bytes;
}

Bytes Allocator::Impl::GiveBackToOthers(Bytes wanted) {
  if (forked()) return Bytes();
  MutexLock lock(mu_);
  const Bytes held = supply_.pool().bytes();
  // What the driver refuses concerns whoever needs that memory here.
  return TrimTo(held - std::min(wanted, held)).bytes;
}

ChunkProgress Allocator::Impl::TrimTo(Bytes target) {
  if (supply_.pool().bytes() <= target) return ChunkProgress();
  ChunkProgress trimmed = supply_.Release(supply_.pool().bytes() - target);
  if (supply_.pool().bytes() > target) GiveBackIdle(supply_.pool().bytes() - target, Idle(), trimmed);
  DropEmptySegments(/*of_live_streams=*/false);
  UpdateFigures();
  return trimmed;
}

void Allocator::Impl::GiveBackIdle(Bytes wanted, const Idle& idle, ChunkProgress& trimmed) {
  // Pending memory that all streams are done with is idle too. Settling it may close an epoch, hence two checks.
  CompletionCheck others(events_, *device_);
  SettleComplete(others);
  trimmed.status.Update(others.status());
  CompletionCheck completion(events_, *device_);
  const ChunkProgress unmapped = mover_.MakeSpare(wanted, {completion, idle.pool, {}, idle.freed_until});
  trimmed.status.Update(unmapped.status);
  const ChunkProgress released = supply_.Release(unmapped.bytes);
  trimmed.chunks += released.chunks;
  trimmed.bytes += released.bytes;
  trimmed.status.Update(released.status);
  trimmed.status.Update(completion.status());
}

absl::StatusOr<Bytes> Allocator::Impl::TrimUnused() {
  MutexLock lock(mu_);
  if (!age_log_) return absl::FailedPreconditionError("trim_after is not set: no memory is ever too old");
  (void)NoteAge();
  const ChunkProgress trimmed = GiveBackOld();
  if (!trimmed.status.ok()) return trimmed.status;
  return trimmed.bytes;
}

bool Allocator::Impl::NoteAge() {
  const AgeLog::Time now = options_.clock ? options_.clock() : std::chrono::steady_clock::now().time_since_epoch();
  return age_log_->Note(now, idle_queue_.newest(), supply_.spare());
}

ChunkProgress Allocator::Impl::GiveBackOld() {
  const AgeLog::Old old = age_log_->Find();
  ChunkProgress trimmed = supply_.Release(old.spare, ReleaseBound::kAtMost);
  GiveBackIdle(supply_.pool().bytes(), Idle{nullptr, old.frees}, trimmed);
  DropEmptySegments(/*of_live_streams=*/false);
  UpdateFigures();
  return trimmed;
}

}  // namespace expanse

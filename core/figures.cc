// The part of the allocator that keeps its figures up to date, and tells them.

#include <chrono>
#include <utility>

#include "core/allocator_impl.h"

namespace expanse {

void Allocator::Impl::UpdateFigures() {
  reserved_.Set(supply_.pool().bytes());
  soft_limit_.Update(supply_.pool().bytes());
  if (age_log_) age_log_->NoteSpare(supply_.spare());
  // Growth takes spare chunks without asking who created them; those that were created ahead are taken last.
  if (prewarmed_.current() > supply_.spare()) prewarmed_.Set(supply_.spare());
  UpdateIdle();
  Bytes addresses = addresses_.reserved();
  for (const auto& [id, of_pool] : pool_addresses_) addresses += of_pool->reserved();
  address_space_.Set(addresses);
}

void Allocator::Impl::UpdateIdle() { idle_.Set(supply_.smallest() * idle_queue_.idle_slots() + supply_.spare()); }

Stats Allocator::Impl::GetStats() const {
  MutexLock lock(mu_);
  return CurrentStats();
}

Stats Allocator::Impl::CurrentStats() const {
  Stats stats = counts_;
  stats.live = live_bytes_.figure();
  stats.allocated = allocated_.figure();
  stats.pending = pending_.figure();
  stats.reserved = reserved_.figure();
  stats.idle = idle_.figure();
  stats.pinned = pinned_.figure();
  stats.prewarmed = prewarmed_.figure();
  stats.address_space = address_space_.figure();
  stats.live_blocks = live_.size();
  stats.chunks_created = supply_.pool().created().count();
  stats.chunks_released = supply_.pool().released().count();
  stats.chunks_moved = grower_.moved();
  stats.chunks_refilled = grower_.refilled();
  stats.chunks_quarantined = supply_.pool().chunks(ChunkState::kQuarantined).count();
  stats.failed_allocations = stats.rungs.failed;
  stats.rungs.moved = grower_.growths_that_moved();
  stats.rungs.created = grower_.growths_that_created();
  stats.unforced_moves.spent = std::chrono::nanoseconds(grower_.budget().spent());
  stats.unforced_moves.allowed = std::chrono::nanoseconds(grower_.budget().Allowed());
  stats.gpu_stalls = gpu_stalls_.stalls();
  stats.lock_stalls = lock_stalls_.stalls();
  stats.prewarm_stalls = prewarm_stalls_.stalls();
  stats.waits = stats.gpu_stalls.count;
  const DriverCallCounts calls = device_->calls();
  stats.driver_calls = calls.TotalCalls();
  stats.driver_time = calls.TotalMeasured();
  stats.process = GetProcessBudgets();
  return stats;
}

void Allocator::Impl::ResetPeaks() {
  MutexLock lock(mu_);
  for (FigureCounter* figure :
       {&live_bytes_, &allocated_, &pending_, &reserved_, &idle_, &pinned_, &prewarmed_, &address_space_}) {
    figure->ResetPeak();
  }
  for (PoolState* pool : pools_.Pools()) pool->figures().ResetPeaks();
}

}  // namespace expanse

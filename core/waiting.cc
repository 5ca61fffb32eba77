// The part of the allocator that waits for the device, with the lock released meanwhile.

#include <memory>
#include <utility>
#include <vector>

#include "core/allocator_impl.h"
#include "vmm/driver_call.h"
#include "vmm/scoped_context.h"

namespace expanse {

std::optional<Allocator::Impl::HeldBack> Allocator::Impl::OldestIncomplete(const PoolState* pool) const {
  std::optional<HeldBack> oldest;
  const std::optional<IdleExtent> extent = idle_queue_.Find([pool](const IdleExtent& candidate) {
    const StreamHeap& heap = *candidate.slots.segment->heap();
    return (pool == nullptr || &heap.pool() == pool) && !heap.stream()->IsComplete(candidate.epoch);
  });
  if (extent) oldest = HeldBack{Ticket{extent->slots.segment->heap()->stream(), extent->epoch}, extent->stamp};
  for (const PendingBlock& pending : pending_queue_.blocks()) {
    if (pool != nullptr && &pending.block->segment->heap()->pool() != pool) continue;
    if (oldest && pending.number > oldest->number) break;
    for (const Ticket& ticket : pending.tickets) {
      if (!ticket.stream->IsComplete(ticket.epoch)) return HeldBack{ticket, pending.number};
    }
    break;
  }
  return oldest;
}

absl::StatusOr<bool> Allocator::Impl::WaitForMore(const PoolState* pool, Climb& climb) {
  absl::Status status;
  const std::optional<HeldBack> oldest = OldestIncomplete(pool);
  if (oldest) {
    if (!climb.MayWaitFor(oldest->number, idle_queue_.newest())) return false;
    status = WaitFor(oldest->ticket);
  } else {
    if (pool != nullptr) return false;
    // What was released lately may not be counted as free before the context is synchronised.
    if (!supply_.released_since_sync() || !climb.MayWaitForContext()) return false;
    climb.NoteWaitedForContext();
    status = WaitForContext();
  }
  climb.NoteWaited();
  if (!status.ok()) return status;
  return true;
}

absl::Status Allocator::Impl::WaitFor(const Ticket& ticket) {
  if (ticket.stream->IsOpen(ticket.epoch)) {
    const absl::StatusOr<uint64_t> closed = ticket.stream->Close(events_, *device_);
    if (!closed.ok()) return closed.status();
  }
  std::shared_ptr<const Event> event = ticket.stream->EventOf(ticket.epoch);
  if (event == nullptr) return WaitForContext();
  ++counts_.rungs.waited;
  const StallCounter::Clock::time_point begin = StallCounter::Clock::now();
  mu_.Unlock();
  const absl::Status status = event->Synchronize();
  mu_.Lock();
  gpu_stalls_.AddSince(begin);
  if (!status.ok()) return status;
  // Known without asking again, so that every round gets further even if the driver should refuse to be asked.
  event.reset();  // so that it can be recorded again
  ticket.stream->CompleteUpTo(ticket.epoch, events_);
  return absl::OkStatus();
}

// Waits for everything that was queued in the context so far.
absl::Status Allocator::Impl::WaitForContext() {
  std::vector<Ticket> covered;
  for (std::shared_ptr<StreamState>& stream : streams_.Streams()) {
    const uint64_t epoch = stream->last_closed();
    covered.push_back(Ticket{std::move(stream), epoch});
  }
  ++counts_.rungs.synchronized;
  // Another thread may release more meanwhile, which the driver may not count yet.
  const uint64_t releases = supply_.releases();
  const StallCounter::Clock::time_point begin = StallCounter::Clock::now();
  mu_.Unlock();
  const Driver& driver = device_->driver();
  const absl::StatusOr<ScopedContext> context = ScopedContext::Enter(*device_);
  absl::Status status = context.status();
  if (status.ok()) status = CallStatus(driver, driver.ctx_synchronize(), EntryPoint::ctx_synchronize);
  mu_.Lock();
  gpu_stalls_.AddSince(begin);
  if (!status.ok()) return status;
  supply_.NoteSynchronized(releases);
  for (const Ticket& ticket : covered) ticket.stream->CompleteUpTo(ticket.epoch, events_);
  return absl::OkStatus();
}

}  // namespace expanse

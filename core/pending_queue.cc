#include "core/pending_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse {

bool PendingQueue::IsComplete(const PendingBlock& pending, CompletionCheck& completion) {
  for (const Ticket& ticket : pending.tickets) {
    if (!completion.IsComplete(*ticket.stream, ticket.epoch)) return false;
  }
  return true;
}

PendingQueue::Blocks PendingQueue::TakeCompleteAtFront(CompletionCheck& completion) {
  Blocks complete;
  while (!blocks_.empty() && IsComplete(blocks_.front(), completion)) {
    complete.push_back(blocks_.front().block);
    blocks_.pop_front();
  }
  return complete;
}

PendingQueue::Blocks PendingQueue::TakeComplete(CompletionCheck& completion) {
  Blocks complete;
  std::deque<PendingBlock> left;
  for (PendingBlock& pending : blocks_) {
    if (IsComplete(pending, completion)) {
      complete.push_back(pending.block);
    } else {
      left.push_back(std::move(pending));
    }
  }
  blocks_ = std::move(left);
  return complete;
}

const PendingBlock* PendingQueue::Find(absl::FunctionRef<bool(const PendingBlock&)> wanted) const {
  for (const PendingBlock& pending : blocks_) {
    if (wanted(pending)) return &pending;
  }
  return nullptr;
}

absl::Status PendingQueue::CheckInvariants() const {
  uint64_t previous = 0;
  for (const PendingBlock& pending : blocks_) {
    if (pending.block->state != BlockState::kPending) {
      return absl::InternalError(
          absl::StrCat("the queued block ", ToString(pending.block->range()), " is not pending"));
    }
    if (pending.tickets.empty() || pending.number <= previous) {
      return absl::InternalError(
          absl::StrCat("the queued block ", ToString(pending.block->range()), " waits for nothing or is out of order"));
    }
    previous = pending.number;
  }
  return absl::OkStatus();
}

}  // namespace expanse

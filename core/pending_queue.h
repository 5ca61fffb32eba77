// Blocks that the user freed while other streams may still use them.

#ifndef EXPANSE_CORE_PENDING_QUEUE_H_
#define EXPANSE_CORE_PENDING_QUEUE_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/block.h"
#include "core/completion.h"
#include "core/stream_state.h"

namespace expanse {

struct PendingBlock {
  Block* block = nullptr;
  absl::InlinedVector<Ticket, 2> tickets;  // the other streams, each once
  uint64_t number = 0;                     // of the free, as in FreeStamp
};

// In the order of their frees.
//
// Invariant: every block here is kPending and waits for one other stream at least, and numbers increase.
// Guarded by the allocator's lock.
class PendingQueue {
 public:
  void Push(PendingBlock pending) { blocks_.push_back(std::move(pending)); }

  using Blocks = absl::InlinedVector<Block*, 8>;

  // Takes out the blocks at the front that are complete, up to the first that is not.
  [[nodiscard]] Blocks TakeCompleteAtFront(CompletionCheck& completion);
  // Takes out every block that is complete. O(blocks).
  [[nodiscard]] Blocks TakeComplete(CompletionCheck& completion);

  // The first block that is so; null if none is. O(blocks).
  [[nodiscard]] const PendingBlock* Find(absl::FunctionRef<bool(const PendingBlock&)> wanted) const;

  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  [[nodiscard]] const std::deque<PendingBlock>& blocks() const { return blocks_; }
  // OK, or INTERNAL naming the inconsistency. O(blocks).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  static bool IsComplete(const PendingBlock& pending, CompletionCheck& completion);

  std::deque<PendingBlock> blocks_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_PENDING_QUEUE_H_

// Freed blocks that streams other than their own may still use.

#ifndef EXPANSE_BENCH_ALLOCATORS_DEFERRED_FREES_H_
#define EXPANSE_BENCH_ALLOCATORS_DEFERRED_FREES_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/allocators/block.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse::bench {

// Holds each block until an event recorded at its free is complete on every stream in its `uses`. Events are asked
// about in the order of each stream, and no further than the first that is not complete.
//
// Events are kept for reuse, as PyTorch does. Invariant: a block is held while `events` > 0, which is the number of its
// events in the queues.
// Not thread-safe: the allocator's lock guards it. A context must be current on the calling thread.
class DeferredFrees {
 public:
  using Done = absl::FunctionRef<void(Block&)>;

  explicit DeferredFrees(const Driver& driver) : driver_(driver) {}
  ~DeferredFrees();  // destroys the events; the blocks are their segments'
  DeferredFrees(const DeferredFrees&) = delete;
  DeferredFrees& operator=(const DeferredFrees&) = delete;

  [[nodiscard]] bool empty() const { return queued_ == 0; }
  // Events in the queues, over all blocks.
  [[nodiscard]] uint64_t queued() const { return queued_; }

  // Records an event on each stream in `block.uses` and clears it. On failure nothing has changed.
  [[nodiscard]] absl::Status Defer(Block& block);
  // Hands the blocks whose last event has completed to `done`. Never waits.
  [[nodiscard]] absl::Status Collect(Done done);
  // Waits for every event and hands all blocks to `done`.
  [[nodiscard]] absl::Status WaitForAll(Done done);

 private:
  struct Entry {
    abi::Event event;
    Block* block;
  };
  // A stream that was ever used. There are few of them, and they stay in order of first use.
  struct Queue {
    StreamHandle stream;
    std::deque<Entry> entries;
  };

  Queue& QueueOf(StreamHandle stream);
  void Pop(Queue& queue, Done done);

  absl::StatusOr<abi::Event> TakeEvent();

  const Driver driver_;
  std::vector<abi::Event> spare_;  // made before, and not waited for any more
  std::vector<Queue> queues_;
  uint64_t queued_ = 0;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_DEFERRED_FREES_H_

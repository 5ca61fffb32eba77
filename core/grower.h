// Puts memory behind addresses: the growth of a segment set, out of spare, created and moved chunks.

#ifndef EXPANSE_CORE_GROWER_H_
#define EXPANSE_CORE_GROWER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/chunk_supply.h"
#include "core/completion.h"
#include "core/growth_window.h"
#include "core/idle_queue.h"
#include "core/options.h"
#include "core/pool_state.h"
#include "core/recorder.h"
#include "core/segment.h"

namespace expanse {

// Growth takes exactly the chunks that are missing: spare ones first; then `lazy` creates until limit or device refuse
// and moves what is still missing, and `frugal` moves first and creates what is still missing. A device that refused
// lately is asked last.
//
// Moving takes idle chunks that the device is done with, least recently freed first, whatever pool, stream and size
// class they served: they are unmapped there and mapped here. At its limit a pool grows out of its own idle chunks
// only.
//
// Each growth is a transaction. After a failure the window is as it was; chunks that were created for it are spare and
// counted in `created_for_failed`, for the caller to use in another attempt or to release; chunks that were on the move
// are spare; what the driver would not unmap again is quarantined.
// Guarded by the allocator's lock.
class Grower {
 public:
  Grower(ChunkSupply& supply, IdleQueue& idle_queue, Recorder& recorder, Growth policy)
      : supply_(supply), idle_queue_(idle_queue), recorder_(recorder), policy_(policy) {}

  // Grows one of `segments`, none of which has a free block of `size`, and takes a block of that size there.
  // NOT_FOUND: no gap is large enough. RESOURCE_EXHAUSTED: chunks are missing. Else what the driver refused.
  [[nodiscard]] absl::StatusOr<Block*> Grow(absl::Span<Segment* const> segments, Bytes size,
                                            CompletionCheck& completion);

  // Physical memory that the last call of Grow would have had to create, and the part of it that limit, budget or
  // device did not allow; zero if that was not why it failed.
  [[nodiscard]] Bytes needed() const { return needed_; }
  [[nodiscard]] Bytes missing() const { return missing_; }

  // Chunks created by failed calls since the last call of this.
  [[nodiscard]] uint64_t TakeCreatedForFailed() { return std::exchange(created_for_failed_, 0); }

  // Unmaps idle chunks and makes them spare: up to `count`, least recently freed first, as far as the device is done
  // with them; only those of one pool, unless it is null. One driver call per run of neighbours. Stops at the first
  // refusal; how many there were by then.
  [[nodiscard]] ChunkProgress MakeSpare(uint64_t count, const PoolState* pool, CompletionCheck& completion);

  // Since it was made: chunks moved; chunks mapped where one had been moved or trimmed away before; growths that moved
  // chunks, and that created some.
  [[nodiscard]] uint64_t moved() const { return moved_; }
  // Whether the last growth failed because of its pool's own limit.
  [[nodiscard]] bool pool_was_full() const { return pool_was_full_; }
  [[nodiscard]] uint64_t refilled() const { return refilled_; }
  [[nodiscard]] uint64_t growths_that_moved() const { return growths_that_moved_; }
  [[nodiscard]] uint64_t growths_that_created() const { return growths_that_created_; }

 private:
  absl::StatusOr<Block*> GrowInto(const GrowthWindow& window, CompletionCheck& completion);
  // Where the window would take its pool above its limit, makes chunks spare that are idle in the pool, as many as
  // that.
  absl::Status MakeRoomInPool(const GrowthWindow& window, CompletionCheck& completion);
  absl::Status Gather(const GrowthWindow& window, CompletionCheck& completion);
  absl::Status MoveAway(absl::Span<const SlotRun> runs, uint64_t& unmapped);
  absl::StatusOr<Block*> MapAndTake(const GrowthWindow& window);
  absl::Status Short(uint64_t creatable, uint64_t missing);
  // Only of one pool, unless it is null.
  std::vector<SlotRun> SelectComplete(uint64_t count, const SlotRun& except, const PoolState* pool,
                                      CompletionCheck& completion);

  ChunkSupply& supply_;
  IdleQueue& idle_queue_;
  Recorder& recorder_;
  const Growth policy_;
  uint64_t moved_ = 0;
  uint64_t refilled_ = 0;
  uint64_t growths_that_moved_ = 0;
  uint64_t growths_that_created_ = 0;
  uint64_t created_for_failed_ = 0;
  bool pool_was_full_ = false;
  Bytes needed_;
  Bytes missing_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_GROWER_H_

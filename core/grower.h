// Puts memory behind addresses: the growth of a segment set, out of spare, created and moved chunks.

#ifndef EXPANSE_CORE_GROWER_H_
#define EXPANSE_CORE_GROWER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/chunk_supply.h"
#include "core/completion.h"
#include "core/fill_plan.h"
#include "core/growth_window.h"
#include "core/idle_queue.h"
#include "core/mapping_hooks.h"
#include "core/move_budget.h"
#include "core/options.h"
#include "core/pool_state.h"
#include "core/recorder.h"
#include "core/segment.h"

namespace expanse {

// Growth takes exactly the memory that is missing: spare chunks first; then `lazy` creates until limit or device refuse
// and moves what is still missing, and `frugal` moves first and creates what is still missing. `balanced` is lazy while
// what is held stays near the most that was ever in use; beyond that it moves first, as far as its budget goes and only
// chunks no smaller than what it would create instead. A device that refused lately is asked last.
//
// Moving takes idle chunks that the device is done with, least recently freed first, whatever pool, stream and size
// class they served: they are unmapped there and mapped here. Where memory is short, one that is larger than what is
// missing is released and smaller ones are created in its place. At its limit a pool grows out of its own idle chunks
// only.
//
// A chunk that a callback will not let go is left, and others are taken instead, as long as there are idle ones that
// were not asked for: so a growth meets no more vetoes than chunks were idle.
//
// Each growth is a transaction. After a failure the window is as it was; chunks that were created for it are spare and
// counted in `created_for_failed`, for the caller to use in another attempt or to release; chunks that were on the move
// are spare; what the driver would not unmap again is quarantined.
// Guarded by the allocator's lock.
class Grower {
 public:
  Grower(ChunkSupply& supply, IdleQueue& idle_queue, const MappingHooks& hooks, Recorder& recorder, Growth policy)
      : supply_(supply), idle_queue_(idle_queue), hooks_(hooks), recorder_(recorder), policy_(policy) {}

  // Grows one of `segments`, none of which has a free block of `size`, and takes a block of that size there. Chunks
  // that are created cover at most `largest_chunk` slots. NOT_FOUND: no gap is large enough. RESOURCE_EXHAUSTED: memory
  // is missing. Else what the driver refused.
  [[nodiscard]] absl::StatusOr<Block*> Grow(absl::Span<Segment* const> segments, Bytes size, uint64_t largest_chunk,
                                            CompletionCheck& completion);
  // The same at a place that holds no used or pending byte and lacks a chunk at least.
  [[nodiscard]] absl::StatusOr<Block*> GrowAt(Segment& segment, AddressRange place, uint64_t largest_chunk,
                                              CompletionCheck& completion);
  // So much is in use, or is about to be: allocated and pending.
  void NoteInUse(Bytes in_use) { peak_in_use_ = std::max(peak_in_use_, in_use); }

  // Physical memory that the last call of Grow would have had to create, and the part of it that limit, budget or
  // device did not allow; zero if that was not why it failed.
  [[nodiscard]] Bytes needed() const { return needed_; }
  [[nodiscard]] Bytes missing() const { return missing_; }
  // Whether the last growth failed because of its pool's own limit.
  [[nodiscard]] bool pool_was_full() const { return pool_was_full_; }

  // Memory created by failed calls since the last call of this.
  [[nodiscard]] Bytes TakeCreatedForFailed() { return std::exchange(created_for_failed_, Bytes()); }

  // Unmaps idle chunks and makes them spare, until there are `wanted` bytes of them: least recently freed first, as far
  // as the device is done with them; only those of one pool, unless it is null, that fell idle no later than in the
  // free `freed_until`. One driver call per run of neighbours. Stops at the first refusal; how many there were by then.
  static constexpr uint64_t kLatest = std::numeric_limits<uint64_t>::max();
  [[nodiscard]] ChunkProgress MakeSpare(Bytes wanted, const PoolState* pool, CompletionCheck& completion,
                                        uint64_t freed_until = kLatest);

  // Since it was made: chunks moved; slots mapped where a chunk had been moved or trimmed away before; growths that
  // moved chunks, and that created some.
  [[nodiscard]] uint64_t moved() const { return moved_; }
  [[nodiscard]] uint64_t refilled() const { return refilled_; }
  [[nodiscard]] uint64_t growths_that_moved() const { return growths_that_moved_; }
  [[nodiscard]] uint64_t growths_that_created() const { return growths_that_created_; }
  [[nodiscard]] const MoveBudget& budget() const { return budget_; }

 private:
  static constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  // Balanced growth creates freely up to the peak in use and this part of the limit.
  static constexpr uint64_t kFreeOfLimit = 128;

  // What one attempt knows.
  struct Attempt {
    SlotRun own;             // the slots of the window
    uint64_t largest_chunk;  // in slots, that may be created
    CompletionCheck& completion;
    uint64_t freed_until = kLatest;  // younger chunks are left
  };

  absl::StatusOr<Block*> GrowInto(const GrowthWindow& window, uint64_t largest_chunk, CompletionCheck& completion);
  // Where the window would take its pool above its limit, makes chunks spare that are idle in the pool, as many as
  // that.
  absl::Status MakeRoomInPool(const PoolState& pool, uint64_t missing, const Attempt& attempt);
  absl::Status PoolIsFull(const PoolState& pool, uint64_t missing);
  // Makes chunks spare until the plan misses nothing.
  absl::Status Gather(FillPlan& plan, const Attempt& attempt);
  // RESOURCE_EXHAUSTED if so many more slots, with what is spare and what may be moved, are less than what is missing.
  absl::Status CheckEnough(const FillPlan& plan, uint64_t creatable, const Attempt& attempt);
  absl::Status Short(uint64_t creatable, uint64_t missing);
  // Slots of spare chunks that the plan has no place for.
  [[nodiscard]] uint64_t UnplannedSpare(const FillPlan& plan) const;
  // The steps of Gather. Each adds to the plan what it made spare.
  void UseSpare(FillPlan& plan) const;
  absl::Status MoveUnforced(FillPlan& plan, const Attempt& attempt);
  // Creates up to `most` slots, in chunks of at most `largest`. No error if limit or device refuse.
  absl::Status Create(FillPlan& plan, uint64_t largest, uint64_t most);
  absl::Status Move(FillPlan& plan, absl::Span<const SlotRun> victims);
  // Puts smaller chunks in the place of spare ones that are larger than what is missing.
  absl::Status BreakUp(FillPlan& plan, uint64_t largest);

  // Idle chunks that the device is done with, as runs of neighbours. The first that cover at least `slots`, or as many
  // as there are, only of one pool unless it is null; and the first, up to `most`, that cover at least `smallest` slots
  // each and each still have a place in the plan.
  [[nodiscard]] std::vector<SlotRun> SelectAnySize(uint64_t slots, const PoolState* pool, const Attempt& attempt) const;
  [[nodiscard]] std::vector<SlotRun> SelectFitting(FillPlan plan, uint64_t smallest, uint64_t most,
                                                   const Attempt& attempt) const;
  // Until `visit` returns false.
  void ForEachMovable(const PoolState* pool, const Attempt& attempt,
                      absl::FunctionRef<bool(const SlotRun& chunk)> visit) const;
  // Unmaps runs of whole chunks, which become spare. Leaves out those that the hooks will not let go, which are then
  // the last to be chosen again. Stops at the first refusal of the driver.
  ChunkProgress MoveAway(absl::Span<const SlotRun> runs);
  std::vector<SlotRun> WithoutVetoed(absl::Span<const SlotRun> runs);
  // Whether another attempt will choose other chunks: there were vetoes, but not as many as chunks were idle when this
  // was `most`.
  [[nodiscard]] bool MayChooseOthers(uint64_t vetoes_before, uint64_t most) const {
    return vetoes_ != vetoes_before && vetoes_ < most;
  }
  absl::StatusOr<Block*> MapAndTake(const GrowthWindow& window, const FillPlan& plan);
  [[nodiscard]] Bytes SizeOf(uint64_t slots) const { return supply_.smallest() * slots; }

  ChunkSupply& supply_;
  IdleQueue& idle_queue_;
  const MappingHooks& hooks_;
  Recorder& recorder_;
  const Growth policy_;
  MoveBudget budget_;
  Bytes peak_in_use_;
  uint64_t moved_ = 0;
  uint64_t refilled_ = 0;
  uint64_t growths_that_moved_ = 0;
  uint64_t growths_that_created_ = 0;
  Bytes created_for_failed_;
  uint64_t vetoes_ = 0;
  bool pool_was_full_ = false;
  Bytes needed_;
  Bytes missing_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_GROWER_H_

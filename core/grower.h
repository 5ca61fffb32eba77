// Puts memory behind addresses: the growth of a segment set, out of spare, created and moved chunks.

#ifndef EXPANSE_CORE_GROWER_H_
#define EXPANSE_CORE_GROWER_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/chunk_mover.h"
#include "core/chunk_supply.h"
#include "core/completion.h"
#include "core/fill_plan.h"
#include "core/growth_window.h"
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
// Moved chunks are unmapped where they are idle and mapped here. Where memory is short, one that is larger than what is
// missing is released and smaller ones are created in its place; and where moves go on and on although the workload
// leaves room, several small ones are released for a larger one, which costs hardly more than to move them and makes
// the next move cheap. At its limit a pool grows out of its own idle chunks only.
//
// Each growth is a transaction. After a failure the window is as it was; chunks that were created for it are spare and
// counted in `created_for_failed`, for the caller to use in another attempt or to release; chunks that were on the move
// are spare; what the driver would not unmap again is quarantined.
// Guarded by the allocator's lock.
class Grower {
 public:
  // With `one_chunk_size` all chunks have the smallest size.
  Grower(ChunkSupply& supply, ChunkMover& mover, const MappingHooks& hooks, Recorder& recorder, Growth policy,
         bool one_chunk_size)
      : supply_(supply),
        mover_(mover),
        hooks_(hooks),
        recorder_(recorder),
        policy_(policy),
        may_merge_(!one_chunk_size) {}

  // Grows one of `segments`, none of which has a free block of `size`, and takes a block of that size there. Chunks
  // that are created cover at most `largest_chunk` slots. NOT_FOUND: no gap is large enough. RESOURCE_EXHAUSTED: memory
  // is missing. Else what the driver refused.
  [[nodiscard]] absl::StatusOr<Block*> Grow(absl::Span<Segment* const> segments, Bytes size, uint64_t largest_chunk,
                                            CompletionCheck& completion);
  // The same at a place that holds no used or pending byte and lacks a chunk at least.
  [[nodiscard]] absl::StatusOr<Block*> GrowAt(Segment& segment, AddressRange place, uint64_t largest_chunk,
                                              CompletionCheck& completion);
  // Forgets why the last growth failed: the next attempt may fail before anything is grown.
  void BeginAttempt() {
    pool_was_full_ = false;
    needed_ = missing_ = Bytes();
  }
  // A chunk was created by others than a growth.
  void NoteCreated(Bytes size) { budget_.Created(size); }
  // So much is in use, or is about to be: allocated and pending.
  void NoteInUse(Bytes in_use) { peak_in_use_ = std::max(peak_in_use_, in_use); }

  // Physical memory that the last call of Grow would have had to create, and the part of it that limit, budget or
  // device did not allow; zero if that was not why it failed.
  [[nodiscard]] Bytes needed() const { return needed_; }
  [[nodiscard]] Bytes missing() const { return missing_; }
  // Whether the last growth failed because of its pool's own limit.
  [[nodiscard]] bool pool_was_full() const { return pool_was_full_; }

  // Memory created by failed calls since the last call of this, but what took the place of other chunks.
  [[nodiscard]] Bytes TakeCreatedForFailed() {
    const Bytes replaced = std::exchange(replaced_for_failed_, Bytes());
    const Bytes created = std::exchange(created_for_failed_, Bytes());
    return created - std::min(created, replaced);
  }

  // Since it was made: chunks moved; slots mapped where a chunk had been moved or trimmed away before; growths that
  // moved chunks, and that created some.
  [[nodiscard]] uint64_t moved() const { return moved_; }
  [[nodiscard]] uint64_t refilled() const { return refilled_; }
  [[nodiscard]] uint64_t growths_that_moved() const { return growths_that_moved_; }
  [[nodiscard]] uint64_t growths_that_created() const { return growths_that_created_; }
  [[nodiscard]] const MoveBudget& budget() const { return budget_; }

  // From now on each growth that creates notes what it could have moved instead beyond what the policy allows to leave
  // idle. O(idle chunks) a growth, so only whoever checks invariants asks for it.
  void Audit() const { audit_ = true; }
  // OK, or INTERNAL: some growth did.
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  static constexpr uint64_t kAny = FillPlan::kAny;
  // Balanced growth creates freely up to the peak in use and this part of the limit.
  static constexpr uint64_t kFreeOfLimit = 128;
  // Forced moves merge chunks once this part of what is held was moved by force: a workload that repeats has found its
  // places by then.
  static constexpr uint64_t kMergeAfterPart = 2;

  // What one attempt knows.
  struct Attempt {
    uint64_t slots;             // of the window
    uint64_t largest_chunk;     // in slots, that may be created
    ChunkMover::Filter filter;  // spares the window
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
  // Called where nothing is left but to create what the plan misses.
  void NoteCreation(const FillPlan& plan, const Attempt& attempt);
  // The steps of Gather, most of them in gather.cc. Each adds to the plan what it made spare.
  void UseSpare(FillPlan& plan) const;
  absl::Status MoveUnforced(FillPlan& plan, const Attempt& attempt);
  // Whether balanced growth may create what the plan misses before it moves anything.
  [[nodiscard]] bool MayCreateFreely(const FillPlan& plan) const;
  // Where limit and device leave no choice.
  absl::Status MoveForced(FillPlan& plan, const Attempt& attempt);
  // Slots of the chunks that Merge makes; 1: it makes none.
  [[nodiscard]] uint64_t MergedChunkFor(const Attempt& attempt) const;
  // Moves, but puts larger chunks in the place of small ones, as far as many of these are at hand.
  absl::Status Merge(FillPlan& plan, const Attempt& attempt);
  // Releases a spare chunk of so many slots for which others will be created: what a failed growth leaves behind is
  // what was created beyond that.
  absl::Status ReleaseForOthers(uint64_t slots);
  // Releases spare chunks smaller than `slots` that cover so many in all; false, and none is released, if there are not
  // enough.
  absl::StatusOr<bool> ReleaseSmaller(const FillPlan& plan, uint64_t slots);
  // Creates up to `most` slots, in chunks of at most `largest`. No error if limit or device refuse.
  absl::Status Create(FillPlan& plan, uint64_t largest, uint64_t most);
  absl::Status Move(FillPlan& plan, absl::Span<const SlotRun> victims);
  // Moves up to `most` chunks that cover at least `smallest` slots each and each have a place in the plan.
  absl::Status MoveFitting(FillPlan& plan, uint64_t smallest, uint64_t most, const Attempt& attempt);
  // Puts smaller chunks in the place of spare ones that are larger than what is missing.
  absl::Status BreakUp(FillPlan& plan, uint64_t largest);

  absl::StatusOr<Block*> MapAndTake(const GrowthWindow& window, const FillPlan& plan);
  [[nodiscard]] Bytes SizeOf(uint64_t slots) const { return supply_.smallest() * slots; }

  ChunkSupply& supply_;
  ChunkMover& mover_;
  const MappingHooks& hooks_;
  Recorder& recorder_;
  const Growth policy_;
  MoveBudget budget_;
  Bytes peak_in_use_;
  mutable bool audit_ = false;
  Bytes movable_at_creation_;  // the size of a chunk that a growth left idle for no reason
  bool may_merge_;
  Bytes forced_;  // what was missing where moves were forced
  uint64_t moved_ = 0;
  uint64_t refilled_ = 0;
  uint64_t growths_that_moved_ = 0;
  uint64_t growths_that_created_ = 0;
  Bytes created_for_failed_;
  Bytes replaced_for_failed_;
  bool pool_was_full_ = false;
  Bytes needed_;
  Bytes missing_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_GROWER_H_

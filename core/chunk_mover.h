// Takes idle chunks away from where they are mapped.

#ifndef EXPANSE_CORE_CHUNK_MOVER_H_
#define EXPANSE_CORE_CHUNK_MOVER_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/chunk_supply.h"
#include "core/completion.h"
#include "core/fill_plan.h"
#include "core/idle_queue.h"
#include "core/mapping_hooks.h"
#include "core/pool_state.h"
#include "core/recorder.h"
#include "core/segment.h"

namespace expanse {

// A victim is an idle chunk that the device is done with. Victims are selected first, least recently freed first,
// whatever pool, stream and size class they served, and then unmapped; they are spare afterwards.
//
// A chunk that a callback will not let go stays, and is the last to be selected again. So whoever selects anew after
// vetoes meets each chunk that is idle at most once.
// Guarded by the allocator's lock.
class ChunkMover {
 public:
  ChunkMover(ChunkSupply& supply, IdleQueue& idle_queue, const MappingHooks& hooks, Recorder& recorder)
      : supply_(supply), idle_queue_(idle_queue), hooks_(hooks), recorder_(recorder) {}

  static constexpr uint64_t kLatest = std::numeric_limits<uint64_t>::max();

  // Which idle chunks may be victims.
  struct Filter {
    CompletionCheck& completion;
    const PoolState* pool = nullptr;  // only this pool's, unless it is null
    SlotRun spared = {};              // none of these slots
    uint64_t freed_until = kLatest;   // none that fell idle in a later free than this
    bool unused_segments = false;     // only those of segments in which nothing is in use and whose addresses can go
  };

  // Victims as runs of neighbours: the first that cover at least `slots`, or as many as there are; and the first, up to
  // `most`, that each still have a place in the plan, to which they are added, and cover at least `smallest` slots or
  // all of such a place. No other victim of `smallest` slots has a place in it then. O(idle chunks).
  [[nodiscard]] std::vector<SlotRun> SelectAnySize(uint64_t slots, const Filter& filter) const;
  [[nodiscard]] std::vector<SlotRun> SelectFitting(FillPlan& plan, uint64_t smallest, uint64_t most,
                                                   const Filter& filter) const;

  // The size, in slots, of some victim that covers at least `smallest` slots and has a place in the plan; 0: there is
  // none. O(idle chunks).
  [[nodiscard]] uint64_t SizeOfFitting(const FillPlan& plan, uint64_t smallest, const Filter& filter) const;

  // Unmaps runs of whole chunks, but those that a callback will not let go. One driver call a run. Stops at the first
  // refusal of the driver; how many there were by then.
  ChunkProgress MoveAway(absl::Span<const SlotRun> victims);

  // Selects and unmaps victims until `wanted` bytes are made spare; what is vetoed is replaced by others.
  [[nodiscard]] ChunkProgress MakeSpare(Bytes wanted, const Filter& filter);

  // So many vetoes were met, ever; and as many as there will be when every chunk that is idle now was vetoed.
  [[nodiscard]] uint64_t vetoes() const { return vetoes_; }
  [[nodiscard]] uint64_t MostVetoes() const { return vetoes_ + idle_queue_.idle_slots(); }
  // Whether selecting again will find other victims: there were vetoes since there had been `before`, but fewer than
  // `most` in all.
  [[nodiscard]] bool MayChooseOthers(uint64_t before, uint64_t most) const {
    return vetoes_ != before && vetoes_ < most;
  }

 private:
  // Until `visit` returns false.
  void ForEachVictim(const Filter& filter, absl::FunctionRef<bool(const SlotRun& chunk)> visit) const;
  std::vector<SlotRun> WithoutVetoed(absl::Span<const SlotRun> victims);

  ChunkSupply& supply_;
  IdleQueue& idle_queue_;
  const MappingHooks& hooks_;
  Recorder& recorder_;
  uint64_t vetoes_ = 0;
};

[[nodiscard]] uint64_t CountSlots(absl::Span<const SlotRun> runs);

// What the recorder keeps of slots that were mapped or unmapped.
[[nodiscard]] RecordedEvent EventOf(const SlotRun& slots, SnapshotEventKind kind);

}  // namespace expanse

#endif  // EXPANSE_CORE_CHUNK_MOVER_H_

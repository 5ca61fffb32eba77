#include "core/grower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/size_class.h"
#include "core/stream_heap.h"
#include "vmm/mapping.h"

namespace expanse {
namespace {

SlotRun SlotsOf(const GrowthWindow& window) {
  Segment* segment = window.segment;
  const uint64_t first = segment->SlotOf(window.range.begin);
  return SlotRun{segment, first, segment->SlotOf(segment->SlotCeil(window.range.end())) - first};
}

}  // namespace

absl::StatusOr<Block*> Grower::Grow(absl::Span<Segment* const> segments, Bytes size, uint64_t largest_chunk,
                                    CompletionCheck& completion) {
  supply_.AgeRefusal();
  BeginAttempt();
  const std::optional<GrowthWindow> cheapest = FindGrowthWindow(segments, size, WindowChoice::kFewestMissing);
  if (!cheapest) return absl::NotFoundError("no gap of addresses is large enough");
  absl::StatusOr<Block*> block = GrowInto(*cheapest, largest_chunk, completion);
  if (!absl::IsResourceExhausted(block.status())) return block;
  // Chunks that are idle inside a window cannot be moved into it. Where they make the difference, the window that
  // occupies the fewest chunks is the one that can be had.
  const std::optional<GrowthWindow> tightest = FindGrowthWindow(segments, size, WindowChoice::kFewestOccupied);
  // None at all where the failure cost addresses: quarantined ones split their gap.
  if (!tightest || tightest->missing + tightest->idle >= cheapest->missing + cheapest->idle) return block;
  return GrowInto(*tightest, largest_chunk, completion);
}

absl::StatusOr<Block*> Grower::GrowAt(Segment& segment, AddressRange place, uint64_t largest_chunk,
                                      CompletionCheck& completion) {
  supply_.AgeRefusal();
  BeginAttempt();
  return GrowInto(GrowthWindow{&segment, place, 0, 0}, largest_chunk, completion);
}

absl::StatusOr<Block*> Grower::GrowInto(const GrowthWindow& window, uint64_t largest_chunk,
                                        CompletionCheck& completion) {
  const SlotRun own = SlotsOf(window);
  const Attempt attempt{own.count, largest_chunk, {completion, nullptr, own}};
  const uint64_t most_vetoes = mover_.MostVetoes();
  for (;;) {
    const uint64_t vetoes_before = mover_.vetoes();
    FillPlan plan(MissingSlots(window));
    absl::Status gathered = MakeRoomInPool(window.segment->heap()->pool(), plan.missing(), attempt);
    if (gathered.ok()) gathered = Gather(plan, attempt);
    if (gathered.ok()) return MapAndTake(window, plan);
    if (!absl::IsResourceExhausted(gathered) || !mover_.MayChooseOthers(vetoes_before, most_vetoes)) return gathered;
  }
}

absl::Status Grower::MakeRoomInPool(const PoolState& pool, uint64_t missing, const Attempt& attempt) {
  const uint64_t room = pool.Room() / supply_.smallest();
  if (missing <= room) return absl::OkStatus();
  const uint64_t excess = missing - room;
  ChunkMover::Filter of_pool = attempt.filter;
  of_pool.pool = &pool;
  const std::vector<SlotRun> victims = mover_.SelectAnySize(excess, of_pool);
  if (const uint64_t found = CountSlots(victims); found < excess) return PoolIsFull(pool, excess - found);
  const ChunkProgress unmapped = mover_.MoveAway(victims);
  moved_ += unmapped.chunks.count();
  if (!unmapped.status.ok()) return unmapped.status;
  const uint64_t gone = unmapped.bytes / supply_.smallest();
  return gone < excess ? PoolIsFull(pool, excess - gone) : absl::OkStatus();
}

absl::Status Grower::PoolIsFull(const PoolState& pool, uint64_t missing) {
  pool_was_full_ = true;
  needed_ = missing_ = SizeOf(missing);
  return absl::ResourceExhaustedError(
      absl::StrCat(pool.Name(), " is at its limit: ", ToString(SizeOf(missing)), " short"));
}

// Whether it can succeed is looked at before anything is created or moved, and again when the device has refused.
absl::Status Grower::Gather(FillPlan& plan, const Attempt& attempt) {
  const uint64_t moved_before = moved_;
  UseSpare(plan);
  const uint64_t allowed = std::min(plan.missing(), supply_.Creatable(attempt.largest_chunk));
  const uint64_t creatable = supply_.LikelyCreatable(allowed, allowed / attempt.largest_chunk);
  absl::Status status = CheckEnough(plan, creatable, attempt);
  if (status.ok()) status = MoveUnforced(plan, attempt);
  if (status.ok()) NoteCreation(plan, attempt);
  if (status.ok()) status = Create(plan, attempt.largest_chunk, plan.missing());
  if (status.ok() && plan.missing() > 0) {
    status = CheckEnough(plan, 0, attempt);
    if (status.ok()) status = MoveForced(plan, attempt);
    if (status.ok() && plan.missing() > 0) status = Short(0, plan.missing());
  }
  if (moved_ > moved_before) ++growths_that_moved_;
  return status;
}

absl::Status Grower::CheckEnough(const FillPlan& plan, uint64_t creatable, const Attempt& attempt) {
  const uint64_t at_hand = creatable + UnplannedSpare(plan);
  if (plan.missing() <= at_hand) return absl::OkStatus();
  const uint64_t needed = plan.missing() - at_hand;
  const uint64_t movable = CountSlots(mover_.SelectAnySize(needed, attempt.filter));
  return movable < needed ? Short(creatable, needed - movable) : absl::OkStatus();
}

absl::Status Grower::Short(uint64_t creatable, uint64_t missing) {
  needed_ = SizeOf(creatable + missing);
  missing_ = SizeOf(missing);
  return absl::ResourceExhaustedError(absl::StrCat(ToString(SizeOf(missing)), " short"));
}

absl::Status Grower::MoveUnforced(FillPlan& plan, const Attempt& attempt) {
  const bool free_of_charge = policy_ == Growth::kFrugal || supply_.refused();
  if (!free_of_charge && (policy_ == Growth::kLazy || MayCreateFreely(plan))) return absl::OkStatus();
  const uint64_t smallest = free_of_charge ? 1 : attempt.largest_chunk;
  const uint64_t most = free_of_charge ? kAny : budget_.Affordable();
  const uint64_t moved_before = moved_;
  const absl::Status status = MoveFitting(plan, smallest, most, attempt);
  if (!free_of_charge) budget_.Moved(moved_ - moved_before);
  return status;
}

bool Grower::MayCreateFreely(const FillPlan& plan) const {
  const Bytes limit = supply_.pool().bytes() + supply_.pool().bytes_left();
  return supply_.pool().bytes() + SizeOf(plan.missing()) <= peak_in_use_ + limit / kFreeOfLimit;
}

absl::Status Grower::MoveForced(FillPlan& plan, const Attempt& attempt) {
  forced_ += SizeOf(plan.missing());
  absl::Status status = Merge(plan, attempt);
  if (status.ok()) status = MoveFitting(plan, 1, kAny, attempt);
  if (status.ok()) status = BreakUp(plan, attempt.largest_chunk);
  if (status.ok()) status = Move(plan, mover_.SelectAnySize(plan.missing(), attempt.filter));
  if (status.ok()) status = BreakUp(plan, attempt.largest_chunk);
  return status;
}

uint64_t Grower::MergedChunkFor(const Attempt& attempt) const {
  if (!may_merge_ || forced_ < supply_.pool().bytes() / kMergeAfterPart) return 1;
  // Once the device has refused, what is held is all that there is.
  Bytes most = supply_.pool().bytes();
  if (supply_.refusals() == 0) most += supply_.pool().bytes_left();
  return MergedChunk(SizeOf(attempt.slots), most - std::min(most, peak_in_use_), supply_.smallest());
}

absl::Status Grower::Merge(FillPlan& plan, const Attempt& attempt) {
  const uint64_t merged = MergedChunkFor(attempt);
  if (merged == 1) return absl::OkStatus();
  absl::Status status = MoveFitting(plan, merged, kAny, attempt);
  if (!status.ok()) return status;
  const ChunkProgress unmapped = mover_.MoveAway(mover_.SelectAnySize(plan.missing(), attempt.filter));
  moved_ += unmapped.chunks.count();
  status = unmapped.status;
  for (uint64_t size = plan.LargestFit(merged); status.ok() && size > 1; size = plan.LargestFit(merged)) {
    const absl::StatusOr<bool> released = ReleaseSmaller(plan, size);
    status = released.status();
    if (!status.ok() || !*released) break;
    const uint64_t missing_before = plan.missing();
    status = Create(plan, size, size);
    if (plan.missing() == missing_before) may_merge_ = false;  // the device keeps what is released
    if (!may_merge_) break;
  }
  UseSpare(plan);
  return status;
}

// Chunks that a callback would not let go cannot be told from others here.
void Grower::NoteCreation(const FillPlan& plan, const Attempt& attempt) {
  if (!audit_ || plan.missing() == 0 || supply_.Creatable(1) == 0 || !hooks_.empty()) return;
  uint64_t smallest = 1;
  if (policy_ != Growth::kFrugal && !supply_.refused()) {
    if (policy_ == Growth::kLazy || MayCreateFreely(plan) || budget_.Affordable() == 0) return;
    smallest = attempt.largest_chunk;
  }
  const Bytes movable = SizeOf(mover_.SizeOfFitting(plan, smallest, attempt.filter));
  movable_at_creation_ = std::max(movable_at_creation_, movable);
}

absl::Status Grower::CheckInvariants() const {
  if (movable_at_creation_.is_zero()) return budget_.CheckInvariants();
  return absl::InternalError(absl::StrCat("growth: memory was created although an idle chunk of ",
                                          ToString(movable_at_creation_), " could have been moved"));
}

absl::StatusOr<Block*> Grower::MapAndTake(const GrowthWindow& window, const FillPlan& plan) {
  Segment* segment = window.segment;
  std::vector<std::vector<MappedChunk>> mapped;
  MapTransaction transaction(supply_.pool(), segment->reservation());
  absl::Status status;
  for (const FillPlan::Run& run : plan.runs()) {
    mapped.emplace_back();
    uint64_t slot = run.slots.first;
    for (const uint64_t slots : run.chunks) {
      const absl::StatusOr<ChunkId> chunk = transaction.Map(segment->AddressOf(slot), SizeOf(slots));
      status = chunk.status();
      if (!status.ok()) break;
      mapped.back().push_back(MappedChunk{*chunk, slots});
      slot += slots;
    }
    if (!status.ok()) break;
  }
  if (status.ok()) status = transaction.Commit();
  if (!status.ok()) {
    for (const QuarantinedMapping& lost : transaction.quarantined()) segment->Quarantine(lost.range);
    return status;
  }
  created_for_failed_ = replaced_for_failed_ = Bytes();
  Block* block = nullptr;
  for (size_t i = 0; i < mapped.size(); ++i) {
    const SlotRun& slots = plan.runs()[i].slots;
    refilled_ += segment->EvictedSlots(slots);
    block = segment->Fill(slots.first, mapped[i]);
    recorder_.Add(EventOf(slots, SnapshotEventKind::kMap));
    hooks_.Mapped(RangeOf(slots));
  }
  segment->Take(block, window.range.begin, window.range.size);
  return block;
}

}  // namespace expanse

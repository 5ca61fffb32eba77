#include "core/grower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/stream_heap.h"
#include "vmm/mapping.h"

namespace expanse {
namespace {

uint64_t CountSlots(absl::Span<const SlotRun> runs) {
  uint64_t count = 0;
  for (const SlotRun& run : runs) count += run.count;
  return count;
}

SlotRun SlotsOf(const GrowthWindow& window) {
  Segment* segment = window.segment;
  const uint64_t first = segment->SlotOf(window.range.begin);
  return SlotRun{segment, first, segment->SlotOf(segment->SlotCeil(window.range.end())) - first};
}

RecordedEvent EventOf(const SlotRun& run, SnapshotEventKind kind) {
  const Segment& segment = *run.segment;
  return {segment.AddressOf(run.first).value(), segment.chunk_size() * run.count, segment.heap()->stream()->number(), 0,
          kind};
}

}  // namespace

absl::StatusOr<Block*> Grower::Grow(absl::Span<Segment* const> segments, Bytes size, CompletionCheck& completion) {
  supply_.AgeRefusal();
  pool_was_full_ = false;
  needed_ = missing_ = Bytes();
  const std::optional<GrowthWindow> cheapest = FindGrowthWindow(segments, size, WindowChoice::kFewestMissing);
  if (!cheapest) return absl::NotFoundError("no gap of addresses is large enough");
  absl::StatusOr<Block*> block = GrowInto(*cheapest, completion);
  if (!absl::IsResourceExhausted(block.status())) return block;
  // Chunks that are idle inside a window cannot be moved into it. Where they make the difference, the window that
  // occupies the fewest chunks is the one that can be had.
  const std::optional<GrowthWindow> tightest = FindGrowthWindow(segments, size, WindowChoice::kFewestOccupied);
  // None at all where the failure cost addresses: quarantined ones split their gap.
  if (!tightest || tightest->missing + tightest->idle >= cheapest->missing + cheapest->idle) return block;
  return GrowInto(*tightest, completion);
}

absl::StatusOr<Block*> Grower::GrowInto(const GrowthWindow& window, CompletionCheck& completion) {
  absl::Status gathered = MakeRoomInPool(window, completion);
  if (gathered.ok()) gathered = Gather(window, completion);
  if (!gathered.ok()) return gathered;
  return MapAndTake(window);
}

absl::Status Grower::MakeRoomInPool(const GrowthWindow& window, CompletionCheck& completion) {
  const PoolState& pool = window.segment->heap()->pool();
  const uint64_t room = pool.Room() / supply_.chunk_size();
  if (window.missing <= room) return absl::OkStatus();
  const uint64_t excess = window.missing - room;
  const std::vector<SlotRun> victims = SelectComplete(excess, SlotsOf(window), &pool, completion);
  if (const uint64_t found = CountSlots(victims); found < excess) {
    pool_was_full_ = true;
    needed_ = missing_ = supply_.chunk_size() * (excess - found);
    return absl::ResourceExhaustedError(
        absl::StrCat(pool.Name(), " is at its limit: ", ToString(ChunkCount(excess - found)), " short"));
  }
  uint64_t unmapped = 0;
  const absl::Status status = MoveAway(victims, unmapped);
  moved_ += unmapped;
  return status;
}

// Makes as many chunks spare as the window lacks. Nothing is moved unless all are there then.
absl::Status Grower::Gather(const GrowthWindow& window, CompletionCheck& completion) {
  const uint64_t missing = window.missing - std::min(window.missing, supply_.spare());
  if (missing == 0) return absl::OkStatus();
  const SlotRun own = SlotsOf(window);
  const bool move_first = policy_ == Growth::kFrugal || supply_.refused();

  const uint64_t movable = move_first ? CountSlots(SelectComplete(missing, own, nullptr, completion)) : 0;
  const uint64_t to_create = std::min(missing - movable, supply_.Creatable());
  uint64_t to_move = missing - to_create;
  // Whether it can succeed at all is known before anything is created.
  if (to_move > movable) {
    const uint64_t found = CountSlots(SelectComplete(to_move, own, nullptr, completion));
    if (found < to_move) return Short(to_create, to_move - found);
  }
  if (to_create > 0) {
    const ChunkProgress created = supply_.Create(to_create);
    created_for_failed_ += created.chunks.count();
    if (created.chunks.count() > 0) ++growths_that_created_;
    if (!created.status.ok() && !absl::IsResourceExhausted(created.status)) return created.status;
    to_move = missing - created.chunks.count();
  }
  const std::vector<SlotRun> victims = SelectComplete(to_move, own, nullptr, completion);
  if (const uint64_t found = CountSlots(victims); found < to_move) return Short(0, to_move - found);
  uint64_t unmapped = 0;
  const absl::Status status = MoveAway(victims, unmapped);
  moved_ += unmapped;
  if (unmapped > 0) ++growths_that_moved_;
  return status;
}

absl::Status Grower::Short(uint64_t creatable, uint64_t missing) {
  needed_ = supply_.chunk_size() * (creatable + missing);
  missing_ = supply_.chunk_size() * missing;
  return absl::ResourceExhaustedError(absl::StrCat(ToString(ChunkCount(missing)), " short"));
}

std::vector<SlotRun> Grower::SelectComplete(uint64_t count, const SlotRun& except, const PoolState* pool,
                                            CompletionCheck& completion) {
  if (count == 0) return {};
  return idle_queue_.Select(
      count,
      [&](const IdleExtent& extent) {
        const StreamHeap& heap = *extent.slots.segment->heap();
        return (pool == nullptr || &heap.pool() == pool) && completion.IsComplete(*heap.stream(), extent.epoch);
      },
      except);
}

// A run that the driver refuses to unmap is left as it is: a call that fails is taken to have done nothing.
absl::Status Grower::MoveAway(absl::Span<const SlotRun> runs, uint64_t& unmapped) {
  std::vector<ChunkId> chunks;
  for (const SlotRun& run : runs) {
    chunks.clear();
    for (uint64_t slot = run.first; slot < run.end(); ++slot) chunks.push_back(run.segment->chunk(slot));
    const ChunkProgress progress = UnmapChunks(supply_.pool(), run.segment->reservation(), chunks);
    if (!progress.status.ok()) return progress.status;
    run.segment->Evict(run);
    recorder_.Add(EventOf(run, SnapshotEventKind::kUnmap));
    unmapped += run.count;
  }
  return absl::OkStatus();
}

absl::StatusOr<Block*> Grower::MapAndTake(const GrowthWindow& window) {
  Segment* segment = window.segment;
  const std::vector<SlotRun> runs = MissingSlots(window);
  std::vector<ChunkId> chunks;
  MapTransaction transaction(supply_.pool(), segment->reservation());
  absl::Status status;
  for (const SlotRun& run : runs) {
    for (uint64_t slot = run.first; slot < run.end() && status.ok(); ++slot) {
      const absl::StatusOr<ChunkId> chunk = transaction.Map(segment->AddressOf(slot), supply_.chunk_size());
      status = chunk.status();
      if (chunk.ok()) chunks.push_back(*chunk);
    }
  }
  if (status.ok()) status = transaction.Commit();
  if (!status.ok()) {
    for (const QuarantinedMapping& lost : transaction.quarantined())
      segment->Quarantine(segment->SlotOf(lost.range.begin));
    return status;
  }
  created_for_failed_ = 0;
  Block* block = nullptr;
  absl::Span<const ChunkId> rest(chunks);
  for (const SlotRun& run : runs) {
    refilled_ += segment->EvictedSlots(run);
    block = segment->Fill(run.first, rest.subspan(0, run.count));
    recorder_.Add(EventOf(run, SnapshotEventKind::kMap));
    rest.remove_prefix(run.count);
  }
  segment->Take(block, window.range.begin, window.range.size);
  return block;
}

ChunkProgress Grower::MakeSpare(uint64_t count, const PoolState* pool, CompletionCheck& completion) {
  ChunkProgress progress;
  uint64_t unmapped = 0;
  progress.status = MoveAway(SelectComplete(count, SlotRun(), pool, completion), unmapped);
  progress.chunks = ChunkCount(unmapped);
  progress.bytes = supply_.chunk_size() * unmapped;
  return progress;
}

}  // namespace expanse

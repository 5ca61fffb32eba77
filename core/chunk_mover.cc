#include "core/chunk_mover.h"

#include <algorithm>

#include "core/stream_heap.h"
#include "vmm/mapping.h"

namespace expanse {
namespace {

// Chunks of one extent come in address order, so that neighbours meet.
void AddToRuns(const SlotRun& chunk, std::vector<SlotRun>& runs) {
  if (!runs.empty() && runs.back().segment == chunk.segment && runs.back().end() == chunk.first) {
    runs.back().count += chunk.count;
  } else {
    runs.push_back(chunk);
  }
}

}  // namespace

uint64_t CountSlots(absl::Span<const SlotRun> runs) {
  uint64_t count = 0;
  for (const SlotRun& run : runs) count += run.count;
  return count;
}

RecordedEvent EventOf(const SlotRun& slots, SnapshotEventKind kind) {
  const AddressRange range = RangeOf(slots);
  return {range.begin.value(), range.size, slots.segment->heap()->stream()->number(), 0, kind};
}

void ChunkMover::ForEachVictim(const Filter& filter, absl::FunctionRef<bool(const SlotRun& chunk)> visit) const {
  idle_queue_.ForEach([&](const IdleExtent& extent, const SlotRun& chunk) {
    if (extent.stamp > filter.freed_until) return false;  // and so are all that follow
    const StreamHeap& heap = *chunk.segment->heap();
    if (filter.pool != nullptr && &heap.pool() != filter.pool) return true;
    if (filter.unused_segments && (heap.placement() != nullptr || !chunk.segment->IsUnused())) return true;
    if (!filter.completion.IsComplete(*heap.stream(), extent.epoch)) return true;
    return chunk.Touches(filter.spared) || visit(chunk);
  });
}

std::vector<SlotRun> ChunkMover::SelectAnySize(uint64_t slots, const Filter& filter) const {
  std::vector<SlotRun> selected;
  if (slots == 0) return selected;
  uint64_t found = 0;
  ForEachVictim(filter, [&](const SlotRun& chunk) {
    AddToRuns(chunk, selected);
    found += chunk.count;
    return found < slots;
  });
  return selected;
}

std::vector<SlotRun> ChunkMover::SelectFitting(FillPlan& plan, uint64_t smallest, uint64_t most,
                                               const Filter& filter) const {
  std::vector<SlotRun> selected;
  if (most == 0 || plan.missing() == 0) return selected;
  ForEachVictim(filter, [&](const SlotRun& chunk) {
    if (chunk.count < std::min(smallest, plan.LargestFit(FillPlan::kAny)) || !plan.Add(chunk.count)) return true;
    AddToRuns(chunk, selected);
    return --most > 0 && plan.missing() > 0;
  });
  return selected;
}

uint64_t ChunkMover::SizeOfFitting(const FillPlan& plan, uint64_t smallest, const Filter& filter) const {
  const uint64_t room = plan.LargestFit(FillPlan::kAny);
  uint64_t size = 0;
  ForEachVictim(filter, [&](const SlotRun& chunk) {
    if (chunk.count >= smallest && chunk.count <= room) size = chunk.count;
    return size == 0;
  });
  return size;
}

// A run that the driver refuses to unmap is left as it is: a call that fails is taken to have done nothing.
ChunkProgress ChunkMover::MoveAway(absl::Span<const SlotRun> victims) {
  ChunkProgress progress;
  std::vector<ChunkId> chunks;
  const std::vector<SlotRun> allowed = WithoutVetoed(victims);
  for (const SlotRun& run : allowed) {
    chunks.clear();
    for (uint64_t slot = run.first; slot < run.end(); slot = run.segment->ChunkAt(slot).end()) {
      chunks.push_back(run.segment->chunk(slot));
    }
    const ChunkProgress unmapped = UnmapChunks(supply_.pool(), run.segment->reservation(), chunks);
    progress.status = unmapped.status;
    if (!progress.status.ok()) {
      // All were asked about before the first was unmapped.
      for (const SlotRun& left : absl::MakeConstSpan(allowed).subspan(&run - allowed.data())) {
        hooks_.StillMapped(RangeOf(left));
      }
      return progress;
    }
    run.segment->Evict(run);
    recorder_.Add(EventOf(run, SnapshotEventKind::kUnmap));
    progress.chunks += unmapped.chunks;
    progress.bytes += unmapped.bytes;
  }
  return progress;
}

std::vector<SlotRun> ChunkMover::WithoutVetoed(absl::Span<const SlotRun> victims) {
  if (hooks_.empty()) return {victims.begin(), victims.end()};
  std::vector<SlotRun> allowed;
  for (const SlotRun& run : victims) {
    for (uint64_t slot = run.first; slot < run.end();) {
      const SlotRun chunk = run.segment->ChunkAt(slot);
      slot = chunk.end();
      if (hooks_.MayUnmap(RangeOf(chunk))) {
        AddToRuns(chunk, allowed);
      } else {
        ++vetoes_;
        run.segment->Defer(chunk);
      }
    }
  }
  return allowed;
}

ChunkProgress ChunkMover::MakeSpare(Bytes wanted, const Filter& filter) {
  const uint64_t most_vetoes = MostVetoes();
  ChunkProgress progress;
  uint64_t vetoes_before;
  do {
    vetoes_before = vetoes_;
    const Bytes left = wanted - std::min(wanted, progress.bytes);
    const uint64_t slots = RoundUp(left, supply_.smallest()) / supply_.smallest();
    const ChunkProgress more = MoveAway(SelectAnySize(slots, filter));
    progress.chunks += more.chunks;
    progress.bytes += more.bytes;
    progress.status = more.status;
  } while (progress.status.ok() && MayChooseOthers(vetoes_before, most_vetoes));
  return progress;
}

}  // namespace expanse

#include "bench/generate/pipeline_schedule.h"

#include <algorithm>

namespace expanse::bench {
namespace {

// The stage's `index`-th pass in one direction. Chunks take turns in runs of pp micro batches, so that a chunk's
// outputs have travelled through the other stages by the time the next chunk needs them; backward passes visit the
// chunks in the opposite order.
PipelineSlot SlotAt(Pass pass, int64_t index, int64_t pp, int64_t vpp) {
  const int64_t round = index / (pp * vpp);
  const int64_t turn = index % (pp * vpp) / pp;
  return {pass, pass == Pass::kForward ? turn : vpp - 1 - turn, round * pp + index % pp};
}

// Forward passes before the first backward pass.
int64_t WarmUpPasses(int64_t pp, int64_t vpp, int64_t micro_batches, int64_t rank) {
  const int64_t stages_behind = pp - rank - 1;
  const int64_t total = micro_batches * vpp;
  if (vpp == 1) return std::min(stages_behind, total);
  // With a single round there is no steady state to enter.
  if (micro_batches == pp) return total;
  return std::min(2 * stages_behind + (vpp - 1) * pp, total);
}

}  // namespace

std::vector<PipelineSlot> InterleavedSchedule(int64_t pp, int64_t vpp, int64_t micro_batches, int64_t rank) {
  const int64_t total = micro_batches * vpp;
  const int64_t warm_up = WarmUpPasses(pp, vpp, micro_batches, rank);
  std::vector<PipelineSlot> slots;
  slots.reserve(static_cast<size_t>(2 * total));
  int64_t forwards = 0;
  int64_t backwards = 0;
  while (forwards < warm_up) slots.push_back(SlotAt(Pass::kForward, forwards++, pp, vpp));
  while (forwards < total) {
    slots.push_back(SlotAt(Pass::kForward, forwards++, pp, vpp));
    slots.push_back(SlotAt(Pass::kBackward, backwards++, pp, vpp));
  }
  while (backwards < total) slots.push_back(SlotAt(Pass::kBackward, backwards++, pp, vpp));
  return slots;
}

}  // namespace expanse::bench

#include "core/fill_plan.h"

#include <algorithm>

#include "absl/numeric/bits.h"

namespace expanse {
namespace {

size_t LogOf(uint64_t slots) { return static_cast<size_t>(absl::bit_width(slots) - 1); }

}  // namespace

FillPlan::FillPlan(const std::vector<SlotRun>& runs) {
  for (const SlotRun& run : runs) {
    runs_.push_back(Run{run, run.count, {}});
    missing_ += run.count;
  }
}

uint64_t FillPlan::LargestFit(uint64_t most) const {
  uint64_t room = 0;
  for (const Run& run : runs_) room = std::max(room, run.missing);
  return absl::bit_floor(std::min(room, most));
}

bool FillPlan::Add(uint64_t slots) {
  for (Run& run : runs_) {
    if (run.missing < slots) continue;
    run.missing -= slots;
    run.chunks.push_back(slots);
    missing_ -= slots;
    planned_slots_ += slots;
    planned_.resize(std::max(planned_.size(), LogOf(slots) + 1));
    ++planned_[LogOf(slots)];
    return true;
  }
  return false;
}

uint64_t FillPlan::planned(uint64_t slots) const {
  const size_t log = LogOf(slots);
  return log < planned_.size() ? planned_[log] : 0;
}

}  // namespace expanse

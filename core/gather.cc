// The steps by which a growth gets the chunks that it lacks: each adds to the plan what it made spare.

#include <algorithm>
#include <utility>
#include <vector>

#include "core/grower.h"

namespace expanse {

uint64_t Grower::UnplannedSpare(const FillPlan& plan) const {
  return supply_.spare() / supply_.smallest() - plan.planned_slots();
}

void Grower::UseSpare(FillPlan& plan) const {
  if (supply_.spare().is_zero()) return;
  for (uint64_t size = plan.LargestFit(kAny); size > 0; size /= 2) {
    while (supply_.spare(SizeOf(size)) > plan.planned(size) && plan.Add(size)) {
    }
  }
}

absl::Status Grower::Create(FillPlan& plan, uint64_t largest, uint64_t most) {
  const Bytes before = created_for_failed_;
  while (most > 0) {
    const uint64_t size = plan.LargestFit(std::min({largest, most, supply_.Creatable(largest)}));
    if (size == 0) break;
    const absl::Status status = supply_.Create(SizeOf(size));
    if (status.ok()) {
      created_for_failed_ += SizeOf(size);
      budget_.Created(SizeOf(size));
      plan.Add(size);
      most -= size;
    } else if (!absl::IsResourceExhausted(status)) {
      return status;
    } else if (size == 1) {
      break;
    } else {
      largest = size / 2;  // a device that is nearly full may still have a smaller one
    }
  }
  if (created_for_failed_ > before) ++growths_that_created_;
  return absl::OkStatus();
}

absl::Status Grower::MoveFitting(FillPlan& plan, uint64_t smallest, uint64_t most, const Attempt& attempt) {
  FillPlan filled = plan;
  const std::vector<SlotRun> victims = mover_.SelectFitting(filled, smallest, most, attempt.filter);
  const ChunkProgress unmapped = mover_.MoveAway(victims);
  moved_ += unmapped.chunks.count();
  if (unmapped.bytes == SizeOf(CountSlots(victims))) {
    plan = std::move(filled);
  } else {
    UseSpare(plan);
  }
  return unmapped.status;
}

absl::Status Grower::Move(FillPlan& plan, absl::Span<const SlotRun> victims) {
  const ChunkProgress unmapped = mover_.MoveAway(victims);
  moved_ += unmapped.chunks.count();
  UseSpare(plan);
  return unmapped.status;
}

absl::Status Grower::BreakUp(FillPlan& plan, uint64_t largest) {
  for (uint64_t size = 1; plan.missing() > 0 && UnplannedSpare(plan) > 0; size *= 2) {
    while (plan.missing() > 0 && supply_.spare(SizeOf(size)) > plan.planned(size)) {
      const uint64_t missing_before = plan.missing();
      absl::Status status = ReleaseForOthers(size);
      if (status.ok()) status = Create(plan, largest, size);
      // A device that does not give back what it was given would get everything that is spare.
      if (!status.ok() || plan.missing() == missing_before) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Grower::ReleaseForOthers(uint64_t slots) {
  const absl::Status status = supply_.ReleaseOne(SizeOf(slots));
  if (status.ok()) replaced_for_failed_ += SizeOf(slots);
  return status;
}

absl::StatusOr<bool> Grower::ReleaseSmaller(const FillPlan& plan, uint64_t slots) {
  const auto unplanned = [&](uint64_t size) { return supply_.spare(SizeOf(size)) - plan.planned(size); };
  uint64_t smaller = 0;
  for (uint64_t size = slots / 2; size > 0; size /= 2) smaller += unplanned(size) * size;
  if (smaller < slots) return false;
  // Powers of two, the largest first, add up to `slots` exactly.
  for (uint64_t size = slots / 2; slots > 0; size /= 2) {
    for (; slots >= size && unplanned(size) > 0; slots -= size) {
      if (const absl::Status status = ReleaseForOthers(size); !status.ok()) return status;
    }
  }
  return true;
}

}  // namespace expanse

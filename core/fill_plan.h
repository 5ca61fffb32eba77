// Which sizes of chunks fill which missing slots.

#ifndef EXPANSE_CORE_FILL_PLAN_H_
#define EXPANSE_CORE_FILL_PLAN_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "core/idle_queue.h"

namespace expanse {

// Chunks cover a power of two of slots each. The plan says how many chunks of which size go into each run of missing
// slots, in which order; any chunk of that size will do.
//
// Invariant: the chunks planned for a run cover no more slots than it has. Guarded by the allocator's lock.
class FillPlan {
 public:
  struct Run {
    SlotRun slots;
    uint64_t missing = 0;          // slots at its end that no chunk is planned for
    std::vector<uint64_t> chunks;  // the slots that each covers, from the run's begin on
  };

  static constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

  explicit FillPlan(const std::vector<SlotRun>& runs);

  // Slots that no chunk is planned for.
  [[nodiscard]] uint64_t missing() const { return missing_; }
  // The most slots, a power of two and at most `most`, that a chunk may cover and still be added; 0 if none. O(runs).
  [[nodiscard]] uint64_t LargestFit(uint64_t most) const;
  // Plans a chunk of so many slots for the first run that has room. False, and nothing changes, if none has. O(runs).
  bool Add(uint64_t slots);
  // Slots that a chunk is planned for.
  [[nodiscard]] uint64_t planned_slots() const { return planned_slots_; }
  // Planned chunks of a size. O(1).
  [[nodiscard]] uint64_t planned(uint64_t slots) const;

  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

 private:
  std::vector<Run> runs_;
  std::vector<uint64_t> planned_;  // by the binary logarithm of the size
  uint64_t missing_ = 0;
  uint64_t planned_slots_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_FILL_PLAN_H_

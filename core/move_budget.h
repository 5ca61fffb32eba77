// How much unforced moving the balanced policy affords.

#ifndef EXPANSE_CORE_MOVE_BUDGET_H_
#define EXPANSE_CORE_MOVE_BUDGET_H_

#include <cstdint>

#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse {

// Moving idle memory saves creating more, but a place that was robbed may have to be filled again, without end. So
// each MiB that is ever created allows a fixed cost, which its own creation comes out of first: creation in large
// chunks leaves some for moves, creation in small ones nothing. Whatever the workload does, unforced moves cost no more
// than that in all.
//
// Costs are modelled, in nanoseconds of a driver of today (the sources are in docs/simulator.md); only how they compare
// matters. Invariant: spent <= kPerMiB times the MiB created. Guarded by the allocator's lock; every operation is O(1).
class MoveBudget {
 public:
  // Creating a chunk, mapping it and making it accessible.
  static constexpr uint64_t kCreate = 50'000;
  static constexpr uint64_t kCreatePerMiB = 140;
  // Unmapping a chunk in one place, mapping it and making it accessible in another. Neighbours rarely move together.
  static constexpr uint64_t kMove = 70'000;
  // What chunks of some 7 MiB cost, or 2.7 times what the 20 MiB handles of PyTorch's expandable segments do.
  static constexpr uint64_t kPerMiB = 7'000;

  void Created(Bytes size) {
    created_ += size;
    creation_ += kCreate + kCreatePerMiB * MiBOf(size);
  }
  // Chunks that may be moved now. Move no more than that.
  [[nodiscard]] uint64_t Affordable() const {
    const uint64_t gone = creation_ + spent_;
    return Allowed() > gone ? (Allowed() - gone) / kMove : 0;
  }
  void Moved(uint64_t chunks) { spent_ += chunks * kMove; }

  [[nodiscard]] uint64_t spent() const { return spent_; }
  [[nodiscard]] uint64_t Allowed() const { return kPerMiB * MiBOf(created_); }
  [[nodiscard]] absl::Status CheckInvariants() const {
    if (spent_ <= Allowed()) return absl::OkStatus();
    return absl::InternalError("unforced moves cost more than what was created allows");
  }

 private:
  static uint64_t MiBOf(Bytes size) { return size.count() >> 20; }

  Bytes created_;
  uint64_t creation_ = 0;
  uint64_t spent_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_MOVE_BUDGET_H_

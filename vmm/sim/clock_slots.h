// The places in vector clocks, given to streams and taken back.

#ifndef EXPANSE_VMM_SIM_CLOCK_SLOTS_H_
#define EXPANSE_VMM_SIM_CLOCK_SLOTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "vmm/sim/vector_clock.h"

namespace expanse::sim {

// Keeps vector clocks as short as the number of streams alive at once, however many come and go.
//
// A slot serves another stream only once the host knows all the work of the one before: then that work comes before
// everything the new stream will queue, which is what sharing a slot claims. The new stream goes on counting from the
// last tick.
//
// Invariant: each slot is with a stream, retired or free; a retired one has work that the host does not know, a free
// one has none. Not thread-safe.
class ClockSlots {
 public:
  // A slot for a new stream, whose last tick is host.at(slot). O(1).
  [[nodiscard]] uint32_t Take() {
    if (free_.empty()) return count_++;
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  // The stream of `last.slot` is gone, and `last` was its last work.
  void Retire(Epoch last) { retired_.push_back(last); }

  // Frees what the host knows by now. O(retired).
  void FreeKnown(const VectorClock& host) {
    const auto unknown = [&](Epoch last) { return !host.Covers(last); };
    const auto known = std::stable_partition(retired_.begin(), retired_.end(), unknown);
    for (auto it = known; it != retired_.end(); ++it) free_.push_back(it->slot);
    retired_.erase(known, retired_.end());
  }

  // All slots, in use or not.
  [[nodiscard]] size_t count() const { return count_; }

  // OK, or which slot breaks the invariant, given the slots that are with streams.
  [[nodiscard]] absl::Status CheckInvariants(const std::vector<uint32_t>& with_streams, const VectorClock& host) const {
    std::vector<uint32_t> places = with_streams;
    places.insert(places.end(), free_.begin(), free_.end());
    for (const Epoch last : retired_) {
      places.push_back(last.slot);
      if (host.Covers(last)) {
        return absl::InternalError(absl::StrCat("clock slot ", last.slot, " is retired, but the host knows its work"));
      }
    }
    for (uint32_t slot = 0; slot < count_; ++slot) {
      const auto at = std::count(places.begin(), places.end(), slot);
      if (at != 1) return absl::InternalError(absl::StrCat("clock slot ", slot, " is at ", at, " places"));
    }
    return absl::OkStatus();
  }

 private:
  uint32_t count_ = 0;
  std::vector<uint32_t> free_;
  std::vector<Epoch> retired_;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_CLOCK_SLOTS_H_

// Vector clocks: what is known to have happened before what, without looking at the time it happened.

#ifndef EXPANSE_VMM_SIM_VECTOR_CLOCK_H_
#define EXPANSE_VMM_SIM_VECTOR_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace expanse::sim {

// One piece of work: the `tick`-th piece queued by the stream that owns `slot`. Ticks start at 1.
struct Epoch {
  uint32_t slot = 0;
  uint64_t tick = 0;

  friend bool operator==(Epoch a, Epoch b) { return a.slot == b.slot && a.tick == b.tick; }
};

// For each slot, how many of its pieces of work are known to come before the clock's owner. Slots never mentioned are
// at 0. Not thread-safe. Every operation is O(slots) at most.
class VectorClock {
 public:
  [[nodiscard]] uint64_t at(uint32_t slot) const { return slot < ticks_.size() ? ticks_[slot] : 0; }

  // Whether that piece of work comes before this clock's owner.
  [[nodiscard]] bool Covers(Epoch epoch) const { return at(epoch.slot) >= epoch.tick; }

  void Set(uint32_t slot, uint64_t tick) {
    if (slot >= ticks_.size()) ticks_.resize(slot + 1);
    ticks_[slot] = tick;
  }

  // Afterwards this clock knows what either knew.
  void Join(const VectorClock& other) {
    if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
    for (size_t i = 0; i < other.ticks_.size(); ++i) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }

 private:
  std::vector<uint64_t> ticks_;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_VECTOR_CLOCK_H_

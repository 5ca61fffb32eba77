// Finds work that touches the same physical bytes without anything that orders it.

#ifndef EXPANSE_VMM_SIM_RACE_DETECTOR_H_
#define EXPANSE_VMM_SIM_RACE_DETECTOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "vmm/sim/interval_map.h"
#include "vmm/sim/vector_clock.h"
#include "vmm/units.h"

namespace expanse::sim {

// The number of a physical allocation; never used again for another one.
enum class AllocationId : uint64_t {};
// What cuStreamGetId answers; never used again for another stream.
enum class StreamId : uint64_t {};

// Bytes of a physical allocation, wherever they are mapped.
struct PhysicalExtent {
  AllocationId allocation{};
  Bytes offset;
  Bytes size;
};

// A piece of queued work, as reports name it.
struct WorkRef {
  uint64_t number = 0;  // counts all work of the timeline, from 1
  StreamId stream{};
  const char* what = "";  // what queued it, as "cuMemcpyAsync"; a literal

  friend bool operator==(const WorkRef& a, const WorkRef& b) { return a.number == b.number; }
  [[nodiscard]] std::string ToString() const;  // "work 12 (cuMemcpyAsync) on stream 3"
};

// Two pieces of work on the same bytes, at least one of which writes them, in no order. `bytes` is where they meet,
// or the first such place if there are several.
struct Race {
  WorkRef earlier;  // queued earlier, that is
  bool earlier_writes = false;
  WorkRef later;
  bool later_writes = false;
  PhysicalExtent bytes;

  [[nodiscard]] std::string ToString() const;
};

// For each physical byte: the last write and the reads since, as far as they could still race with work to come.
//
// A write replaces what was before it (whoever is ordered after the write is ordered after that too, or the race was
// reported). A read replaces the reads that come before it. What the host knows to be complete can race with nothing
// any more, as all later work comes after it, and is swept away: the history is at most about twice as large as what
// could still race, whatever the number of pieces of work.
//
// Bytes are physical, so it sees through aliases and through chunks that moved. Not thread-safe.
class RaceDetector {
 public:
  // Work `work`, being piece `epoch`, touches `extent`; `before` is what comes before it. Appends to `races`, once for
  // each pair of pieces of work. O(log n + pieces of history met).
  void Touch(const PhysicalExtent& extent, bool writes, const WorkRef& work, Epoch epoch, const VectorClock& before,
             std::vector<Race>& races);

  // Forgets what `host_knows` covers, if the history has doubled since the last time. Amortised O(1) per Touch.
  void Sweep(const VectorClock& host_knows);

  // The allocation is gone.
  void Forget(AllocationId allocation);

  // Intervals of history held.
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Touching {
    Epoch epoch;
    WorkRef work;
    friend bool operator==(const Touching& a, const Touching& b) { return a.epoch == b.epoch; }
  };
  // Invariant: no read comes before another one, and each slot has at most one.
  struct History {
    bool written = false;
    Touching write;
    std::vector<Touching> reads;
    friend bool operator==(const History& a, const History& b) {
      return a.written == b.written && (!a.written || a.write == b.write) && a.reads == b.reads;
    }
  };

  absl::flat_hash_map<AllocationId, IntervalMap<History>> histories_;
  size_t size_ = 0;       // Intervals in all histories.
  size_t sweep_at_ = 64;  // Sweep when there are this many.
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_RACE_DETECTOR_H_

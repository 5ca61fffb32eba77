// A bounded sample of a replay's figures over time.

#ifndef EXPANSE_BENCH_REPLAY_TIMELINE_H_
#define EXPANSE_BENCH_REPLAY_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/replay/replay.h"

namespace expanse::bench {

// Keeps of each stretch of events the points with the least and the most live and reserved bytes, so that a picture
// drawn from the sample shows every peak and every dip that one drawn from all points would, at its right height.
// With no more events than fit, every point is kept.
//
// Invariant: points are in order of events, at most kMaxPoints of them. Not thread-safe.
class TimelineSampler {
 public:
  static constexpr uint64_t kMaxPoints = 2000;

  // `events` is how many points will be added at most.
  explicit TimelineSampler(uint64_t events);

  // O(1). Events must ascend.
  void Add(const TimelinePoint& point);
  [[nodiscard]] std::vector<TimelinePoint> Take() &&;

 private:
  enum Extreme { kLeastLive, kMostLive, kLeastReserved, kMostReserved, kExtremes };

  void EndStretch();

  const uint64_t stretch_;  // events in a stretch
  uint64_t in_stretch_ = 0;
  std::array<TimelinePoint, kExtremes> extremes_;
  std::vector<TimelinePoint> points_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_TIMELINE_H_

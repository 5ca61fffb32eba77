#include "bench/replay/timeline.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace expanse::bench {
namespace {

uint64_t StretchFor(uint64_t events) {
  if (events <= TimelineSampler::kMaxPoints) return 1;
  constexpr uint64_t kStretches = TimelineSampler::kMaxPoints / 4;
  return (events + kStretches - 1) / kStretches;
}

}  // namespace

TimelineSampler::TimelineSampler(uint64_t events) : stretch_(StretchFor(events)) {}

void TimelineSampler::Add(const TimelinePoint& point) {
  if (in_stretch_ == 0) {
    extremes_.fill(point);
  } else {
    if (point.live < extremes_[kLeastLive].live) extremes_[kLeastLive] = point;
    if (point.live > extremes_[kMostLive].live) extremes_[kMostLive] = point;
    if (point.reserved < extremes_[kLeastReserved].reserved) extremes_[kLeastReserved] = point;
    if (point.reserved > extremes_[kMostReserved].reserved) extremes_[kMostReserved] = point;
  }
  if (++in_stretch_ == stretch_) EndStretch();
}

void TimelineSampler::EndStretch() {
  std::sort(extremes_.begin(), extremes_.end(),
            [](const TimelinePoint& a, const TimelinePoint& b) { return a.event < b.event; });
  for (size_t i = 0; i < extremes_.size(); ++i) {
    if (i == 0 || extremes_[i].event != extremes_[i - 1].event) points_.push_back(extremes_[i]);
  }
  in_stretch_ = 0;
}

std::vector<TimelinePoint> TimelineSampler::Take() && {
  if (in_stretch_ > 0) EndStretch();
  return std::move(points_);
}

}  // namespace expanse::bench

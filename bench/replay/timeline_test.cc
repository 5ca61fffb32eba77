#include "bench/replay/timeline.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

TimelinePoint Point(uint64_t event, Bytes live, Bytes reserved) { return {event, live, live, Bytes(0), reserved}; }

TEST(Timeline, KeepsEveryPointOfAShortReplay) {
  TimelineSampler sampler(TimelineSampler::kMaxPoints);
  for (uint64_t i = 0; i < TimelineSampler::kMaxPoints; ++i) sampler.Add(Point(i, Bytes(i), Bytes(2 * i)));
  const std::vector<TimelinePoint> points = std::move(sampler).Take();
  ASSERT_EQ(points.size(), TimelineSampler::kMaxPoints);
  for (uint64_t i = 0; i < points.size(); ++i) EXPECT_EQ(points[i].event, i);
}

TEST(Timeline, StaysBoundedInOrderAndKeepsExtremes) {
  for (const uint64_t events : {2001u, 2499u, 50'000u, 133'236u}) {
    std::mt19937_64 random(events);
    TimelineSampler sampler(events);
    Bytes most_live, most_reserved, least_live = TiB(1), least_reserved = TiB(1);
    for (uint64_t i = 0; i < events; ++i) {
      const Bytes live(random() % 1'000'000'000), reserved = live + Bytes(random() % 1'000'000'000);
      most_live = std::max(most_live, live);
      least_live = std::min(least_live, live);
      most_reserved = std::max(most_reserved, reserved);
      least_reserved = std::min(least_reserved, reserved);
      sampler.Add(Point(i, live, reserved));
    }
    const std::vector<TimelinePoint> points = std::move(sampler).Take();
    EXPECT_LE(points.size(), TimelineSampler::kMaxPoints);
    EXPECT_GE(points.size(), TimelineSampler::kMaxPoints / 4) << "too coarse a sample of " << events;
    EXPECT_TRUE(std::is_sorted(points.begin(), points.end(), [](const TimelinePoint& a, const TimelinePoint& b) {
      return a.event <= b.event;
    })) << "strictly ascending";
    auto holds = [&points](auto predicate) { return std::any_of(points.begin(), points.end(), predicate); };
    EXPECT_TRUE(holds([&](const TimelinePoint& p) { return p.live == most_live; }));
    EXPECT_TRUE(holds([&](const TimelinePoint& p) { return p.live == least_live; }));
    EXPECT_TRUE(holds([&](const TimelinePoint& p) { return p.reserved == most_reserved; }));
    EXPECT_TRUE(holds([&](const TimelinePoint& p) { return p.reserved == least_reserved; }));
  }
}

TEST(Timeline, KeepsAnUnfinishedStretch) {
  TimelineSampler sampler(100'000);
  sampler.Add(Point(0, Bytes(1), Bytes(1)));
  EXPECT_EQ(std::move(sampler).Take().size(), 1u);
}

}  // namespace
}  // namespace expanse::bench

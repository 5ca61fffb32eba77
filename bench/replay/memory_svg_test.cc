#include "bench/replay/memory_svg.h"

#include <random>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReplayResult Result(const std::string& allocator, std::vector<TimelinePoint> timeline) {
  ReplayResult result;
  result.allocator = allocator;
  result.capacity = GiB(4);
  result.events = 100;
  for (const TimelinePoint& point : timeline) {
    result.peak_live = std::max(result.peak_live, point.live);
    result.peak_reserved = std::max(result.peak_reserved, point.reserved);
  }
  result.timeline = std::move(timeline);
  return result;
}

TimelinePoint Point(uint64_t event, Bytes live, Bytes reserved) { return {event, live, live, Bytes(0), reserved}; }

// Whether every tag that opens also closes: the least that a viewer needs.
void ExpectWellFormed(const std::string& svg) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z]+)[^>]*?(/?)>");
  for (std::sregex_iterator match(svg.begin(), svg.end(), tag), end; match != end; ++match) {
    if ((*match)[3] == "/") continue;
    if ((*match)[1] == "/") {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*match)[2]);
      open.pop_back();
    } else {
      open.push_back((*match)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(MemorySvg, ShowsLinesLegendAndTitle) {
  const std::string svg =
      DrawMemorySvg("a <trace> & more", {Result("expanse", {Point(0, GiB(1), GiB(2)), Point(50, GiB(2), GiB(3))}),
                                         Result("caching", {Point(0, GiB(1), GiB(3)), Point(99, GiB(2), GiB(3))})});
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("<title>a &lt;trace&gt; &amp; more</title>"));
  EXPECT_THAT(svg, HasSubstr("expanse, reserved peak 3.00 GiB"));
  EXPECT_THAT(svg, HasSubstr("caching, reserved peak 3.00 GiB"));
  EXPECT_THAT(svg, HasSubstr("live, peak 2.00 GiB"));
  EXPECT_THAT(svg, HasSubstr("capacity 4.00 GiB"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
}

TEST(MemorySvg, CrossesOutWhatRanOutOfMemory) {
  ReplayResult died = Result("caching", {Point(0, GiB(1), GiB(3))});
  EXPECT_EQ(Count(DrawMemorySvg("t", {died}), "em-halo\" stroke-width"), 0u);
  died.out_of_memory = true;
  died.failed_at_event = 1;
  const std::string svg = DrawMemorySvg("t", {died});
  EXPECT_EQ(Count(svg, "em-halo\" stroke-width"), 2u);
  EXPECT_THAT(svg, HasSubstr("out of memory"));
}

TEST(MemorySvg, LeavesOutACapacityFarOffTheScale) {
  ReplayResult result = Result("expanse", {Point(0, GiB(1), GiB(1))});
  result.capacity = GiB(80);
  EXPECT_THAT(DrawMemorySvg("t", {result}), Not(HasSubstr("capacity")));
}

TEST(MemorySvg, LabelsMarksWhereThereIsRoom) {
  ReplayResult result = Result("expanse", {Point(0, GiB(1), GiB(1)), Point(99, GiB(1), GiB(1))});
  result.marks = {{"one", 0, 0, {}}, {"crowded", 1, 0, {}}, {"two", 60, 0, {}}};
  std::string svg = DrawMemorySvg("t", {result});
  EXPECT_THAT(svg, HasSubstr(">one<"));
  EXPECT_THAT(svg, Not(HasSubstr(">crowded<")));
  EXPECT_THAT(svg, HasSubstr(">two<"));
  result.marks = {{"init", 0, 0, {}}, {"step0", 1, 0, {}}, {"step1", 60, 0, {}}};
  svg = DrawMemorySvg("t", {result});
  EXPECT_THAT(svg, Not(HasSubstr(">init<"))) << "steps have the room";
  EXPECT_THAT(svg, HasSubstr(">step0<"));
  EXPECT_THAT(svg, HasSubstr(">step1<"));
}

TEST(MemorySvg, DrawsNothingOfNothing) {
  ExpectWellFormed(DrawMemorySvg("t", {}));
  ExpectWellFormed(DrawMemorySvg("t", {Result("expanse", {})}));
}

TEST(MemorySvg, StaysBelow200KilobytesForTheWorstTimelines) {
  std::vector<ReplayResult> results;
  std::mt19937_64 random(1);
  for (int i = 0; i < 8; ++i) {
    std::vector<TimelinePoint> timeline;
    for (uint64_t event = 0; event < 2000; ++event) {
      timeline.push_back(Point(event, Bytes(random() % GiB(64).count()), Bytes(random() % GiB(80).count())));
    }
    results.push_back(Result(absl::StrCat("allocator", i), std::move(timeline)));
    results.back().events = 2000;
    for (uint64_t mark = 0; mark < 500; ++mark)
      results.back().marks.push_back({absl::StrCat("m", mark), mark * 4, 0, {}});
  }
  EXPECT_LT(DrawMemorySvg("t", results).size(), 200'000u);
}

}  // namespace
}  // namespace expanse::bench

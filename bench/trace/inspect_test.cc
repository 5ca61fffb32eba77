#include "bench/trace/inspect.h"

#include "bench/trace/base_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace expanse::bench {
namespace {

using ::testing::HasSubstr;

LoadedTrace Loaded() {
  LoadedTrace loaded;
  loaded.trace = ParseBaseFormat(
                     "op,id,bytes,stream\na,1,512,0\na,2,513,1\nm,step0,,\nf,1,,0\na,3,4096,1\nf,3,,0\nf,2,,1\n"
                     "m,step1,,\na,4,100,0\n",
                     "t.csv")
                     .value();
  loaded.warnings = {"a warning"};
  return loaded;
}

TEST(Inspect, SortsBlocksIntoSizeClasses) {
  const TraceFacts facts = Inspect(Loaded().trace);
  ASSERT_EQ(facts.size_classes.size(), 4u);
  EXPECT_EQ(facts.size_classes[0].largest, Bytes(512));
  EXPECT_EQ(facts.size_classes[0].allocations, 2u);
  EXPECT_EQ(facts.size_classes[0].bytes, Bytes(612));
  EXPECT_EQ(facts.size_classes[0].live_at_peak, Bytes(0));
  EXPECT_EQ(facts.size_classes[1].largest, KiB(1));
  EXPECT_EQ(facts.size_classes[1].live_at_peak, Bytes(513));
  EXPECT_EQ(facts.size_classes[2].allocations, 0u);
  EXPECT_EQ(facts.size_classes[3].largest, KiB(4));
  EXPECT_EQ(facts.size_classes[3].live_at_peak, Bytes(4096));
}

TEST(Inspect, LiveAtPeakAddsUpToThePeak) {
  const TraceFacts facts = Inspect(Loaded().trace);
  Bytes sum;
  for (const SizeClassFacts& c : facts.size_classes) sum += c.live_at_peak;
  EXPECT_EQ(sum, facts.summary.peak_live);
}

TEST(Inspect, StreamsMarksAndLifetimes) {
  const TraceFacts facts = Inspect(Loaded().trace);
  ASSERT_EQ(facts.streams.size(), 2u);
  EXPECT_EQ(facts.streams[0].stream, 0);
  EXPECT_EQ(facts.streams[0].peak_live, Bytes(512));
  EXPECT_EQ(facts.streams[1].allocations, 2u);
  EXPECT_EQ(facts.streams[1].bytes, Bytes(4609));
  EXPECT_EQ(facts.streams[1].peak_live, Bytes(4609));
  ASSERT_EQ(facts.marks.size(), 2u);
  EXPECT_EQ(facts.marks[0].event, 2u);
  EXPECT_EQ(facts.marks[0].live, Bytes(1025));
  EXPECT_EQ(facts.marks[1].event, 6u);
  EXPECT_EQ(facts.marks[1].live, Bytes(0));
  // Lifetimes of 2, 1 and 4 events.
  EXPECT_EQ(facts.lifetimes.freed, 3u);
  EXPECT_EQ(facts.lifetimes.median, 2u);
  EXPECT_EQ(facts.lifetimes.percentile_90, 4u);
  EXPECT_EQ(facts.lifetimes.longest, 4u);
  EXPECT_EQ(facts.lifetimes.freed_on_another_stream, 1u);
}

TEST(Inspect, TextNamesTheFigures) {
  const std::string text = InspectText(Loaded());
  EXPECT_THAT(text, HasSubstr("t.csv\n  format            base\n"));
  EXPECT_THAT(text, HasSubstr("events            7: 4 allocations, 3 frees"));
  EXPECT_THAT(text, HasSubstr("4.50 KiB (4609 bytes), at event 3"));
  EXPECT_THAT(text, HasSubstr("step1"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(Inspect, JsonParsesAndNamesTheFigures) {
  const nlohmann::json json = nlohmann::json::parse(InspectJson(Loaded()));
  EXPECT_EQ(json["name"], "t.csv");
  EXPECT_EQ(json["format"], "base");
  EXPECT_EQ(json["events"], 7);
  EXPECT_EQ(json["peak_live_bytes"], 4609);
  EXPECT_EQ(json["warnings"][0], "a warning");
  EXPECT_EQ(json["size_classes"].size(), 4u);
  EXPECT_EQ(json["streams"][1]["peak_live_bytes"], 4609);
  EXPECT_EQ(json["mark_list"][1]["label"], "step1");
  EXPECT_EQ(json["lifetime_events"]["longest"], 4);
}

TEST(Inspect, LabelsThatAreNotUtf8StillMakeJson) {
  LoadedTrace loaded;
  loaded.trace = ParseBaseFormat("op,id,bytes,stream\nm,\xff\xfe,,\n", "\xff").value();
  EXPECT_TRUE(nlohmann::json::accept(InspectJson(loaded)));
}

TEST(Inspect, AnEmptyTraceHasNoFacts) {
  const TraceFacts facts = Inspect(Trace());
  EXPECT_TRUE(facts.size_classes.empty());
  EXPECT_TRUE(facts.streams.empty());
  EXPECT_FALSE(InspectText(LoadedTrace()).empty());
}

TEST(Inspect, TheLargestSizesHaveAClass) {
  Trace trace = ParseBaseFormat("op,id,bytes,stream\na,1,4611686018427387904,0\n", "t").value();
  const TraceFacts facts = Inspect(trace);
  ASSERT_EQ(facts.size_classes.size(), 1u);
  EXPECT_EQ(facts.size_classes[0].largest, kMaxLiveBytes);
}

}  // namespace
}  // namespace expanse::bench

#include "bench/generate/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "bench/trace/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using testing::HasSubstr;

Trace Generate(const RandomConfig& config) {
  absl::StatusOr<Trace> trace = GenerateRandom(config);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *std::move(trace) : Trace();
}

RandomConfig Small() {
  RandomConfig config;
  config.events = 20'000;
  config.live = MiB(256);
  config.max_size = MiB(16);
  config.seed = 5;
  return config;
}

std::vector<uint64_t> Sizes(const Trace& trace) {
  std::vector<uint64_t> sizes;
  for (const TraceEvent& event : trace.events) {
    if (event.op == TraceOp::kAllocate) sizes.push_back(event.value);
  }
  return sizes;
}

TEST(Random, DefaultsApproachTheirLiveBytesAndNeverExceedThem) {
  const Trace trace = Generate(RandomConfig());
  ASSERT_TRUE(Validate(trace).ok()) << Validate(trace);
  const TraceSummary summary = Summarize(trace);
  EXPECT_EQ(summary.events, 80'000u);
  EXPECT_EQ(summary.allocations, 40'000u);
  EXPECT_EQ(summary.live_blocks_at_end, 0u);
  EXPECT_EQ(summary.streams, 1u);
  EXPECT_LE(summary.peak_live, GiB(40));
  EXPECT_GT(summary.peak_live, GiB(40) - MiB(1));
  EXPECT_GT(summary.largest_block, MiB(900));
}

TEST(Random, OnePhaseDrawsLogUniformSizes) {
  RandomConfig config = Small();
  config.phases = 1;
  config.min_size = Bytes(1024);
  config.max_size = MiB(1);
  std::array<int, 10> octaves{};
  const std::vector<uint64_t> sizes = Sizes(Generate(config));
  ASSERT_EQ(sizes.size(), 10'000u);
  for (const uint64_t size : sizes) {
    ASSERT_GE(size, 1024u);
    ASSERT_LE(size, MiB(1).count());
    ASSERT_EQ(size % 4, 0u);
    size_t octave = 0;
    while (octave < 9 && (size >> (octave + 11)) != 0) ++octave;
    ++octaves[octave];
  }
  for (const int count : octaves) EXPECT_NEAR(count, 1000, 160);  // more than five standard deviations
}

TEST(Random, PhasesChangeTheMixtureOfSizes) {
  RandomConfig config = Small();
  config.phases = 12;
  const Trace trace = Generate(config);
  // Smallest and largest size in each phase.
  std::vector<std::pair<uint64_t, uint64_t>> phases;
  for (const TraceEvent& event : trace.events) {
    if (event.op == TraceOp::kMark && trace.labels[event.block].rfind("phase", 0) == 0) phases.emplace_back(~0ull, 0);
    if (event.op != TraceOp::kAllocate) continue;
    ASSERT_FALSE(phases.empty());
    phases.back().first = std::min(phases.back().first, event.value);
    phases.back().second = std::max(phases.back().second, event.value);
  }
  ASSERT_EQ(phases.size(), 12u);
  const double middle = std::sqrt(512.0 * static_cast<double>(MiB(16).count()));
  int small = 0, large = 0, all = 0;
  for (const auto& [smallest, largest] : phases) {
    if (static_cast<double>(largest) <= middle) {
      ++small;
    } else if (static_cast<double>(smallest) >= middle - 4) {
      ++large;
    } else {
      ++all;
    }
  }
  EXPECT_GT(small, 0);
  EXPECT_GT(large, 0);
  EXPECT_GT(all, 0);
}

TEST(Random, MarksEveryThousandAllocations) {
  RandomConfig config = Small();
  config.events = 6'000;
  config.phases = 2;
  EXPECT_THAT(Generate(config).labels, testing::ElementsAre("phase0", "step0", "step1", "phase1", "step2"));
}

TEST(Random, FreesInRandomOrder) {
  RandomConfig config = Small();
  const Trace trace = Generate(config);
  uint64_t frees = 0, youngest_first = 0, oldest_first = 0;
  std::set<uint32_t> live;
  for (const TraceEvent& event : trace.events) {
    if (event.op == TraceOp::kAllocate) live.insert(event.block);
    if (event.op != TraceOp::kFree) continue;
    if (live.size() > 10) {
      ++frees;
      youngest_first += event.block == *live.rbegin() ? 1 : 0;
      oldest_first += event.block == *live.begin() ? 1 : 0;
    }
    live.erase(event.block);
  }
  ASSERT_GT(frees, 5'000u);
  EXPECT_LT(youngest_first, frees / 10);
  EXPECT_LT(oldest_first, frees / 10);
}

TEST(Random, SpreadsBlocksOverStreams) {
  RandomConfig config = Small();
  config.streams = 4;
  std::map<int32_t, int> blocks;
  for (const TraceEvent& event : Generate(config).events) {
    if (event.op == TraceOp::kAllocate) ++blocks[event.stream];
  }
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks.begin()->first, 0);
  EXPECT_EQ(blocks.rbegin()->first, 3);
  for (const auto& [stream, count] : blocks) EXPECT_NEAR(count, 2'500, 250) << "stream " << stream;
}

TEST(Random, FollowsTheSeed) {
  RandomConfig config = Small();
  const std::vector<uint64_t> once = Sizes(Generate(config));
  EXPECT_EQ(once, Sizes(Generate(config)));
  config.seed = 6;
  EXPECT_NE(once, Sizes(Generate(config)));
}

TEST(Random, TakesTheSmallestConfiguration) {
  RandomConfig config;
  config.events = 2;
  config.phases = 1;
  config.min_size = config.max_size = config.live = Bytes(4);
  EXPECT_THAT(Sizes(Generate(config)), testing::ElementsAre(4u));
}

struct BadCase {
  const char* name;
  std::function<void(RandomConfig&)> change;
  std::string message;
};
void PrintTo(const BadCase& bad, std::ostream* os) { *os << bad.name; }

class BadRandomConfig : public testing::TestWithParam<BadCase> {};

TEST_P(BadRandomConfig, NamesOptionValueAndExpectation) {
  RandomConfig config;
  GetParam().change(config);
  const absl::Status status = GenerateRandom(config).status();
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadRandomConfig,
    testing::Values(
        BadCase{"NoEvents", [](RandomConfig& c) { c.events = 0; }, "--events 0: expected an even number from 2"},
        BadCase{"OddEvents", [](RandomConfig& c) { c.events = 7; }, "--events 7: expected an even number"},
        BadCase{"TooManyEvents", [](RandomConfig& c) { c.events = 1'000'000'000; }, "--events 1000000000: "},
        BadCase{"TinySizes", [](RandomConfig& c) { c.min_size = Bytes(3); }, "--min-size 3: expected at least 4"},
        BadCase{"SizesReversed", [](RandomConfig& c) { c.max_size = Bytes(511); },
                "--max-size 511: expected min-size = 512"},
        BadCase{"SizesTooLarge", [](RandomConfig& c) { c.max_size = TiB(2); }, "--max-size 2199023255552: "},
        BadCase{"LiveTooSmall", [](RandomConfig& c) { c.live = Bytes(5); }, "--live 5: expected max-size = 1073741824"},
        BadCase{"NoPhases", [](RandomConfig& c) { c.phases = 0; }, "--phases 0: "},
        BadCase{"TooManyPhases", [](RandomConfig& c) { c.phases = 40'001; }, "--phases 40001: expected 1 to"},
        BadCase{"NoStreams", [](RandomConfig& c) { c.streams = 0; }, "--streams 0: "}),
    [](const testing::TestParamInfo<BadCase>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace expanse::bench

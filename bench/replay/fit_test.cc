#include "bench/replay/fit.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "bench/replay/replayer.h"
#include "bench/replay/test_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

// The answer in MiB where `runs` says which capacities, in MiB, run; nullopt for none. Fails where one is probed twice,
// is no multiple of the resolution, or lies outside the bounds.
std::optional<uint64_t> Search(uint64_t lower_mib, uint64_t upper_mib, const std::function<bool(uint64_t)>& runs,
                               std::map<uint64_t, bool>* probed = nullptr) {
  std::map<uint64_t, bool> answers;
  auto probe = [&](Bytes capacity) -> absl::StatusOr<bool> {
    EXPECT_TRUE(IsMultipleOf(capacity, kFitResolution)) << capacity;
    EXPECT_GE(capacity, MiB(lower_mib));
    EXPECT_LE(capacity, MiB(upper_mib));
    const uint64_t mib = capacity / MiB(1);
    EXPECT_TRUE(answers.emplace(mib, runs(mib)).second) << mib << " MiB was probed twice";
    return answers.at(mib);
  };
  absl::StatusOr<std::optional<Bytes>> found = SmallestCapacity(MiB(lower_mib), MiB(upper_mib), probe);
  EXPECT_TRUE(found.ok()) << found.status();
  if (probed != nullptr) *probed = answers;
  if (!found.ok() || !found->has_value()) return std::nullopt;
  return **found / MiB(1);
}

TEST(Fit, FindsTheThresholdWhereverItIs) {
  for (uint64_t threshold = 100; threshold <= 1000; threshold += 2) {
    EXPECT_EQ(Search(100, 1000, [threshold](uint64_t mib) { return mib >= threshold; }), threshold);
  }
}

TEST(Fit, StartsAtPeakLiveRoundedUp) {
  auto always = [](Bytes) -> absl::StatusOr<bool> { return true; };
  EXPECT_EQ(**SmallestCapacity(MiB(64) + Bytes(1), GiB(1), always), MiB(66));
  EXPECT_EQ(**SmallestCapacity(MiB(64), GiB(1), always), MiB(64));
  EXPECT_EQ(**SmallestCapacity(Bytes(1), GiB(1), always), MiB(2));
}

TEST(Fit, FindsNoneWhereNoneRuns) {
  EXPECT_EQ(Search(100, 1000, [](uint64_t) { return false; }), std::nullopt);
  EXPECT_EQ(Search(1000, 100, [](uint64_t) { return true; }), std::nullopt) << "the bounds leave nothing";
  EXPECT_EQ(Search(100, 100, [](uint64_t) { return true; }), 100);
}

TEST(Fit, IsNotTakenInByALuckyCapacityBelowOneThatFails) {
  // 1026 runs by luck: 1028 fails, and so does all up to 1200.
  EXPECT_EQ(Search(1024, 4096, [](uint64_t mib) { return mib == 1026 || mib >= 1200; }), 1200);
}

TEST(Fit, EveryLargerProbedCapacityRuns) {
  // A ragged boundary: between 1100 and 1300 every third capacity fails.
  auto ragged = [](uint64_t mib) { return mib >= 1300 || (mib >= 1100 && mib % 6 != 0); };
  std::map<uint64_t, bool> probed;
  const std::optional<uint64_t> found = Search(1024, 8192, ragged, &probed);
  ASSERT_TRUE(found.has_value());
  for (auto larger = probed.find(*found); larger != probed.end(); ++larger)
    EXPECT_TRUE(larger->second) << larger->first;
}

TEST(Fit, ProbesFewCapacities) {
  std::map<uint64_t, bool> probed;
  EXPECT_EQ(Search(
                61 * 1024, 80 * 1024, [](uint64_t mib) { return mib >= 62 * 1024; }, &probed),
            62 * 1024);
  EXPECT_LT(probed.size(), 35u);
}

TEST(Fit, PassesErrorsOn) {
  auto broken = [](Bytes) -> absl::StatusOr<bool> { return absl::InternalError("broken"); };
  EXPECT_EQ(SmallestCapacity(MiB(2), MiB(4), broken).status().code(), absl::StatusCode::kInternal);
}

// On a device, with an allocator that needs its whole arena: a known answer through all layers.
TEST(Fit, ArenaOfTheAllocatorIsTheSmallestCapacity) {
  const Trace trace = TraceOf("a,1,1048576,0\nf,1,,0\n");
  ReplayOptions options;
  options.allocator = "scripted";
  options.capacity = GiB(1);
  auto factory = [](const Driver& driver,
                    const BenchAllocatorOptions&) -> absl::StatusOr<std::unique_ptr<BenchAllocator>> {
    size_t free = 0, total = 0;
    EXPECT_EQ(driver.mem_get_info(&free, &total), abi::kSuccess);
    if (Bytes(total) < MiB(38)) return absl::ResourceExhaustedError("no room for the arena");
    return std::make_unique<ScriptedAllocator>(driver, MiB(38), MiB(38), nullptr);
  };
  absl::StatusOr<ReplayResult> result = FitWith(trace, options, factory);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->smallest_capacity, MiB(38));
  EXPECT_EQ(result->capacity, MiB(38));
  EXPECT_FALSE(result->out_of_memory);

  options.capacity = MiB(36);
  EXPECT_EQ(FitWith(trace, options, factory).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace expanse::bench

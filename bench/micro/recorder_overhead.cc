// What does recording cost an allocate/free pair?
//
// Two allocators on one simulated device, one of which records, are given the same pairs in turn, a batch each, so that
// whatever else the machine does meets both alike. Reported: the host time of a pair of each, measured, and by how many
// per cent the recording one's is longer.

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "bench/allocators/bench_allocator.h"
#include "bench/micro/micro_rig.h"
#include "bench/micro/pair_benchmark.h"
#include "benchmark/benchmark.h"

namespace expanse::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::duration<double, std::nano>;

constexpr uint64_t kEvents = 1 << 16;
constexpr size_t kWarmUpPairs = 20'000;
constexpr size_t kPairsPerBatch = 1024;

struct Contestant {
  std::unique_ptr<BenchAllocator> allocator;
  std::unique_ptr<PairLane> lane;
  std::vector<double> batches;  // nanoseconds a pair
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void RunRecorderOverhead(benchmark::State& state, const LaneFactory& factory) {
  const absl::StatusOr<std::unique_ptr<MicroRig>> rig = MicroRig::Open("expanse", 1);
  if (!rig.ok()) return state.SkipWithError(rig.status().ToString().c_str());
  const auto live = static_cast<size_t>(state.range(0));
  const size_t rounds = std::max<size_t>(1, kPairsPerBatch / live);
  std::array<Contestant, 2> contestants;  // the second one records
  for (size_t i = 0; i < contestants.size(); ++i) {
    BenchAllocatorOptions options;
    options.record_events = i == 0 ? 0 : kEvents;
    auto allocator = CreateBenchAllocator("expanse", (*rig)->simulator().driver(), options);
    if (!allocator.ok()) return state.SkipWithError(allocator.status().ToString().c_str());
    contestants[i].allocator = *std::move(allocator);
    contestants[i].lane = factory(*contestants[i].allocator, (*rig)->stream(0), live, /*seed=*/0);
  }
  absl::Status status;
  for (Contestant& contestant : contestants) {
    for (size_t pairs = 0; pairs < kWarmUpPairs && status.ok(); pairs += live) status = contestant.lane->RunBatch();
  }
  size_t turn = 0;
  while (state.KeepRunning()) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      Contestant& contestant = contestants[(i + turn) % contestants.size()];
      const Clock::time_point begin = Clock::now();
      for (size_t round = 0; round < rounds && status.ok(); ++round) status = contestant.lane->RunBatch();
      contestant.batches.push_back(Nanoseconds(Clock::now() - begin).count() / static_cast<double>(rounds * live));
    }
    ++turn;
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
  }
  const double without = Median(contestants[0].batches);
  const double with = Median(contestants[1].batches);
  state.counters["host_ns_without"] = without;
  state.counters["host_ns_with"] = with;
  state.counters["recording_adds_percent"] = (with / without - 1) * 100;
}

}  // namespace

void RegisterRecorderOverhead(const std::string& family, const LaneFactory& factory) {
  benchmark::RegisterBenchmark(("BM_RecorderOverhead<" + family + ">").c_str(),
                               [factory](benchmark::State& state) { RunRecorderOverhead(state, factory); })
      ->ArgName("live")
      ->Arg(32)
      ->Arg(1024);
}

}  // namespace expanse::bench

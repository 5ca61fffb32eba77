// What does recording cost an allocate/free pair?
//
// Three allocators on one simulated device are given the same pairs in turn, a batch each: one that records, and two
// that do not. Reported for each repetition, all of it host time, measured:
//   host_ns_without, host_ns_with   a pair's time where nothing is recorded, and where it is; the medians over rounds
//   ratio_with                      the recording one's time to the mean of the others': the median over rounds
//   ratio_control                   the one of the others to the other: how far from 1 chance alone goes
// A round goes through all orders of the three: the first of them is slower, for the processor predicts the branches of
// those that do the same after it. Batches are fractions of a millisecond apart, so that whatever else the machine does
// meets all alike. Each repetition makes its allocators anew, so that it is averaged too where their tables happen to
// lie. Read the row that ends in _median.

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
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
// Two events each, so that the ring has come round before measuring begins.
constexpr size_t kWarmUpPairs = kEvents;
constexpr size_t kPairsPerBatch = 1024;
constexpr int kRepetitions = 9;

enum Role : size_t { kPlain, kRecording, kControl, kRoles };

struct Contestant {
  std::unique_ptr<BenchAllocator> allocator;
  std::unique_ptr<PairLane> lane;
  std::vector<double> rounds;  // nanoseconds a pair, one for each round
};

using Contestants = std::array<Contestant, kRoles>;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Each repetition makes them in another order, for the first one's tables may lie better than the last one's.
absl::Status Start(Contestants& contestants, MicroRig& rig, const LaneFactory& factory, size_t live) {
  PairShape shape;
  shape.live = live;
  static size_t first = 0;
  ++first;
  for (size_t i = 0; i < kRoles; ++i) {
    const size_t role = (first + i) % kRoles;
    BenchAllocatorOptions options;
    options.record_events = role == kRecording ? kEvents : 0;
    auto allocator = CreateBenchAllocator("expanse", rig.simulator().driver(), options);
    if (!allocator.ok()) return allocator.status();
    contestants[role].allocator = *std::move(allocator);
    contestants[role].lane = factory(*contestants[role].allocator, rig.stream(0), shape, /*seed=*/0);
    for (size_t pairs = 0; pairs < kWarmUpPairs; pairs += live) {
      if (absl::Status status = contestants[role].lane->RunBatch(); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status RunRound(Contestants& contestants, size_t live) {
  const size_t batches = std::max<size_t>(1, kPairsPerBatch / live);
  std::array<size_t, kRoles> order = {kPlain, kRecording, kControl};
  std::array<Clock::duration, kRoles> elapsed = {};
  size_t orders = 0;
  do {
    for (const size_t role : order) {
      const Clock::time_point begin = Clock::now();
      for (size_t batch = 0; batch < batches; ++batch) {
        if (absl::Status status = contestants[role].lane->RunBatch(); !status.ok()) return status;
      }
      elapsed[role] += Clock::now() - begin;
    }
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  for (size_t role = 0; role < kRoles; ++role) {
    contestants[role].rounds.push_back(Nanoseconds(elapsed[role]).count() /
                                       static_cast<double>(orders * batches * live));
  }
  return absl::OkStatus();
}

void RunRecorderOverhead(benchmark::State& state, const LaneFactory& factory) {
  const absl::StatusOr<std::unique_ptr<MicroRig>> rig = MicroRig::Open("expanse", 1);
  if (!rig.ok()) return state.SkipWithError(rig.status().ToString().c_str());
  const auto live = static_cast<size_t>(state.range(0));
  Contestants contestants;
  absl::Status status = Start(contestants, **rig, factory, live);
  while (state.KeepRunning()) {
    if (status.ok()) status = RunRound(contestants, live);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
  }
  const std::vector<double>& plain = contestants[kPlain].rounds;
  const std::vector<double>& recording = contestants[kRecording].rounds;
  const std::vector<double>& control = contestants[kControl].rounds;
  std::vector<double> without, ratio_with, ratio_control;
  for (size_t round = 0; round < plain.size(); ++round) {
    without.push_back((plain[round] + control[round]) / 2);
    ratio_with.push_back(recording[round] / without.back());
    ratio_control.push_back(control[round] / plain[round]);
  }
  state.counters["host_ns_without"] = Median(without);
  state.counters["host_ns_with"] = Median(recording);
  state.counters["ratio_with"] = Median(ratio_with);
  state.counters["ratio_control"] = Median(ratio_control);
}

}  // namespace

void RegisterRecorderOverhead(const std::string& family, const LaneFactory& factory) {
  benchmark::RegisterBenchmark(("BM_RecorderOverhead<" + family + ">").c_str(),
                               [factory](benchmark::State& state) { RunRecorderOverhead(state, factory); })
      ->ArgName("live")
      ->Arg(32)
      ->Arg(1024)
      ->Repetitions(kRepetitions)
      ->ReportAggregatesOnly();
}

}  // namespace expanse::bench

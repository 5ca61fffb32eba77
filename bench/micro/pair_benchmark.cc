#include "bench/micro/pair_benchmark.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/micro/micro_rig.h"
#include "bench/micro/rendezvous.h"
#include "benchmark/benchmark.h"
#include "vmm/mutex.h"

namespace expanse::bench {
namespace {

using Clock = std::chrono::steady_clock;

// A prime, so that blocks that are freed together are not allocated again in the same sizes.
constexpr size_t kDistinctSizes = 4093;
// Pairs before measuring begins: several times as many as there are blocks and sizes.
constexpr size_t kWarmUpPairs = 20'000;

// One benchmark, as run again and again with growing numbers of iterations. In each run the threads make one rig, warm
// it up together, measure, and add up what they saw.
class PairBenchmark {
 public:
  PairBenchmark(std::string allocator, LaneFactory factory, ShapeOf shape)
      : allocator_(std::move(allocator)), factory_(std::move(factory)), shape_(std::move(shape)) {}

  void Run(benchmark::State& state) {
    const int threads = state.threads();
    rendezvous_.Meet(threads, [this, threads] {
      const MutexLock lock(mu_);
      elapsed_ = {};
      rig_ = MicroRig::Open(allocator_, threads);
    });
    if (!rig_.ok()) return state.SkipWithError(rig_.status().ToString().c_str());
    MicroRig& rig = **rig_;

    const PairShape shape = shape_(state.range(0));
    const size_t live = shape.live;
    const int thread = state.thread_index();
    const std::unique_ptr<PairLane> lane =
        factory_(rig.allocator(), rig.stream(thread), shape, static_cast<uint64_t>(thread));
    absl::Status status;
    for (size_t pairs = 0; pairs < kWarmUpPairs && status.ok(); pairs += live) status = lane->RunBatch();
    rendezvous_.Meet(threads, [&rig] { rig.simulator().ResetCounters(); });

    // The loop begins and ends with a wait for the other threads, which is not the allocator's.
    Clock::time_point begin{};
    Clock::time_point end{};
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(live))) {
      if (begin == Clock::time_point{}) begin = Clock::now();
      if (status.ok()) status = lane->RunBatch();
      if (!status.ok()) state.SkipWithError(status.ToString().c_str());
      end = Clock::now();
    }
    {
      const MutexLock lock(mu_);
      elapsed_ += end - begin;
    }
    rendezvous_.Meet(threads, [] {});
    if (thread == 0) Report(state, rig);
    rendezvous_.Meet(threads, [this] { rig_ = absl::UnknownError("closed"); });
  }

 private:
  // Counters of all threads are added up, so one thread reports for all.
  void Report(benchmark::State& state, MicroRig& rig) {
    const sim::Counters counters = rig.simulator().counters();
    const double pairs = static_cast<double>(state.iterations()) * state.threads();
    const MutexLock lock(mu_);
    state.counters["driver_calls"] = static_cast<double>(counters.TotalCalls()) / pairs;
    state.counters["modelled_driver_us"] = static_cast<double>(counters.TotalModelled().count()) / 1000 / pairs;
    state.counters["host_ns"] =
        static_cast<double>((std::chrono::nanoseconds(elapsed_) - counters.host_inside).count()) / pairs;
  }

  const std::string allocator_;
  const LaneFactory factory_;
  const ShapeOf shape_;
  Rendezvous rendezvous_;
  absl::StatusOr<std::unique_ptr<MicroRig>> rig_;  // changed only while all threads meet
  Mutex mu_;
  Clock::duration elapsed_ ABSL_GUARDED_BY(mu_){};  // of all threads
};

}  // namespace

PairLane::PairLane(BenchAllocator& allocator, StreamHandle stream, const PairShape& shape, uint64_t seed)
    : allocator_(allocator), stream_(stream), live_(shape.live), rng_(seed) {
  sizes_.reserve(kDistinctSizes);
  for (size_t i = 0; i < kDistinctSizes; ++i) {
    sizes_.emplace_back(rng_.LogUniform(shape.smallest.count(), shape.largest.count()));
  }
  blocks_.reserve(live_);
}

absl::Status PairLane::AllocateNext() {
  const absl::StatusOr<DeviceAddress> address = allocator_.Allocate(sizes_[next_size_], stream_);
  if (!address.ok()) return address.status();
  blocks_.push_back(*address);
  if (++next_size_ == sizes_.size()) next_size_ = 0;
  return absl::OkStatus();
}

absl::Status PairLane::FreeLast() {
  const DeviceAddress address = blocks_.back();
  blocks_.pop_back();
  return allocator_.Free(address, stream_);
}

std::vector<benchmark::internal::Benchmark*> RegisterPairs(const std::string& family, const LaneFactory& factory,
                                                           const std::vector<std::string>& allocators,
                                                           const std::string& argument,
                                                           const std::vector<int64_t>& arguments,
                                                           const ShapeOf& shape) {
  std::vector<benchmark::internal::Benchmark*> registered;
  for (const std::string& allocator : allocators) {
    const auto shared = std::make_shared<PairBenchmark>(allocator, factory, shape);
    registered.push_back(benchmark::RegisterBenchmark(absl::StrCat(family, "<", allocator, ">").c_str(),
                                                      [shared](benchmark::State& state) { shared->Run(state); })
                             ->ArgName(argument));
    for (const int64_t value : arguments) registered.back()->Arg(value);
  }
  return registered;
}

void RegisterPairBenchmarks(const std::string& family, const LaneFactory& factory) {
  const auto of_live = [](int64_t live) {
    PairShape shape;
    shape.live = static_cast<size_t>(live);
    return shape;
  };
  for (benchmark::internal::Benchmark* each :
       RegisterPairs(family, factory, {"expanse", "caching", "naive"}, "live", {32, 1024}, of_live)) {
    each->Threads(1)->Threads(2);
  }
}

}  // namespace expanse::bench

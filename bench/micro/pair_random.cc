// What does a pair cost where blocks are freed in random order, so that free memory is scattered?

#include <memory>
#include <utility>
#include <vector>

#include "bench/micro/pair_benchmark.h"

namespace expanse::bench {
namespace {

// Keeps all its blocks live, and replaces one at random by a new one.
class RandomLane final : public PairLane {
 public:
  RandomLane(BenchAllocator& allocator, StreamHandle stream, size_t live, uint64_t seed)
      : PairLane(allocator, stream, live, seed) {
    constexpr size_t kDistinctPicks = 8191;
    picks_.reserve(kDistinctPicks);
    for (size_t i = 0; i < kDistinctPicks; ++i) picks_.push_back(rng().Between(0, live - 1));
  }

  [[nodiscard]] absl::Status RunBatch() override {
    while (blocks().size() < live()) {  // the first batch alone
      if (absl::Status status = AllocateNext(); !status.ok()) return status;
    }
    for (size_t i = 0; i < live(); ++i) {
      std::swap(blocks()[picks_[next_pick_]], blocks().back());
      if (++next_pick_ == picks_.size()) next_pick_ = 0;
      if (absl::Status status = FreeLast(); !status.ok()) return status;
      if (absl::Status status = AllocateNext(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  std::vector<size_t> picks_;  // used round and round
  size_t next_pick_ = 0;
};

}  // namespace

void RegisterRandomPairs() {
  const LaneFactory factory = [](BenchAllocator& allocator, StreamHandle stream, size_t live, uint64_t seed) {
    return std::make_unique<RandomLane>(allocator, stream, live, seed);
  };
  RegisterPairBenchmarks("BM_PairRandom", factory);
  RegisterRecorderOverhead("Random", factory);
}

}  // namespace expanse::bench

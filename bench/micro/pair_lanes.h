// In which order a benchmark's blocks are freed.

#ifndef EXPANSE_BENCH_MICRO_PAIR_LANES_H_
#define EXPANSE_BENCH_MICRO_PAIR_LANES_H_

#include <utility>
#include <vector>

#include "bench/micro/pair_benchmark.h"

namespace expanse::bench {

// Allocates all its blocks, then frees them, the youngest first.
class LifoLane final : public PairLane {
 public:
  using PairLane::PairLane;

  [[nodiscard]] absl::Status RunBatch() override {
    for (size_t i = 0; i < live(); ++i) {
      if (absl::Status status = AllocateNext(); !status.ok()) return status;
    }
    while (!blocks().empty()) {
      if (absl::Status status = FreeLast(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
};

// Keeps all its blocks live, and replaces one at random by a new one.
class RandomLane final : public PairLane {
 public:
  RandomLane(BenchAllocator& allocator, StreamHandle stream, const PairShape& shape, uint64_t seed)
      : PairLane(allocator, stream, shape, seed) {
    constexpr size_t kDistinctPicks = 8191;
    picks_.reserve(kDistinctPicks);
    for (size_t i = 0; i < kDistinctPicks; ++i) picks_.push_back(rng().Between(0, shape.live - 1));
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

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_MICRO_PAIR_LANES_H_

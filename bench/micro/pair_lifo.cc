// What does a pair cost where blocks are freed in the reverse order of their allocation, as nested calls do?

#include <memory>

#include "bench/micro/pair_benchmark.h"

namespace expanse::bench {
namespace {

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

}  // namespace

void RegisterLifoPairs() {
  const LaneFactory factory = [](BenchAllocator& allocator, StreamHandle stream, size_t live, uint64_t seed) {
    return std::make_unique<LifoLane>(allocator, stream, live, seed);
  };
  RegisterPairBenchmarks("BM_PairLifo", factory);
  RegisterRecorderOverhead("Lifo", factory);
}

}  // namespace expanse::bench

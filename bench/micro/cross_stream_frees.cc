// What does a pair cost where each block is freed on another stream than it was allocated for, so that an event has to
// be recorded and asked about? No work is queued, so that events are complete at once: what is measured is the
// bookkeeping.

#include <utility>

#include "bench/micro/pair_lanes.h"

namespace expanse::bench {
namespace {

// Tells of a use on the legacy default stream before each free.
class SharedLane final : public PairLane {
 public:
  using PairLane::PairLane;

  [[nodiscard]] absl::Status RunBatch() override {
    for (size_t i = 0; i < live(); ++i) {
      if (absl::Status status = AllocateNext(); !status.ok()) return status;
      if (absl::Status status = UseLast(StreamHandle()); !status.ok()) return status;
    }
    while (!blocks().empty()) {
      if (absl::Status status = FreeLast(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterCrossStreamFrees() {
  const auto of_live = [](int64_t live) {
    PairShape shape;
    shape.live = static_cast<size_t>(live);
    return shape;
  };
  (void)RegisterPairs("BM_PairUsedElsewhere", FactoryOf<SharedLane>(), {"expanse", "caching", "naive"}, "live", {32},
                      of_live);
}

}  // namespace expanse::bench

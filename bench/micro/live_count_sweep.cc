// Does a pair cost more where more blocks are live? Blocks are small, so that a million of them fit.

#include "bench/micro/pair_lanes.h"

namespace expanse::bench {

void RegisterLiveCountSweep() {
  const auto of_live = [](int64_t live) {
    PairShape shape;
    shape.live = static_cast<size_t>(live);
    shape.smallest = Bytes(512);
    shape.largest = KiB(64);
    return shape;
  };
  // `naive` would ask the driver a million times before it begins.
  (void)RegisterPairs("BM_PairByLiveCount", FactoryOf<RandomLane>(), {"expanse", "caching"}, "live",
                      {100, 1'000, 10'000, 100'000, 1'000'000}, of_live);
}

}  // namespace expanse::bench

// How does the cost of a pair depend on the size of the block?

#include "bench/micro/pair_lanes.h"

namespace expanse::bench {

void RegisterSizeSweep() {
  const auto of_bytes = [](int64_t bytes) {
    PairShape shape;
    shape.smallest = shape.largest = Bytes(static_cast<uint64_t>(bytes));
    return shape;
  };
  (void)RegisterPairs("BM_PairOfSize", FactoryOf<RandomLane>(), {"expanse", "caching", "naive"}, "bytes",
                      {4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}, of_bytes);
}

}  // namespace expanse::bench

// What does a pair cost where blocks are freed in the reverse order of their allocation, as nested calls do?

#include "bench/micro/pair_lanes.h"

namespace expanse::bench {

void RegisterLifoPairs() {
  RegisterPairBenchmarks("BM_PairLifo", FactoryOf<LifoLane>());
  RegisterRecorderOverhead("Lifo", FactoryOf<LifoLane>());
}

}  // namespace expanse::bench

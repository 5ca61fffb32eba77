// What does a pair cost where blocks are freed in random order, so that free memory is scattered?

#include "bench/micro/pair_lanes.h"

namespace expanse::bench {

void RegisterRandomPairs() {
  RegisterPairBenchmarks("BM_PairRandom", FactoryOf<RandomLane>());
  RegisterRecorderOverhead("Random", FactoryOf<RandomLane>());
}

}  // namespace expanse::bench

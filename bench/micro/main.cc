// expanse_bench: microbenchmarks, run by Google Benchmark. Takes its options, such as --benchmark_filter.

#include "bench/micro/pair_benchmark.h"
#include "benchmark/benchmark.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  expanse::bench::RegisterLifoPairs();
  expanse::bench::RegisterRandomPairs();
  expanse::bench::RegisterSizeSweep();
  expanse::bench::RegisterLiveCountSweep();
  expanse::bench::RegisterCrossStreamFrees();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

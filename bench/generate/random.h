// A worst case for caches: blocks of all sizes, freed in random order, with a mixture of sizes that keeps changing.

#ifndef EXPANSE_BENCH_GENERATE_RANDOM_H_
#define EXPANSE_BENCH_GENERATE_RANDOM_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/trace/trace.h"
#include "vmm/units.h"

namespace expanse::bench {

struct RandomConfig {
  uint64_t events = 80'000;  // allocations and frees together, an even number: each block is freed once
  Bytes live = GiB(40);      // what the live bytes approach and never exceed
  Bytes min_size = Bytes(512);
  Bytes max_size = GiB(1);
  uint64_t phases = 8;   // of equally many allocations, each with sizes of its own
  uint64_t streams = 1;  // each block belongs to one of streams 0 to streams - 1 at random
  uint64_t seed = 0;
};

// Sizes are log-uniform, multiples of 4 bytes. The first phase draws from all sizes; each later phase draws from all
// sizes, from the lower or from the upper half of them on the logarithmic scale, in random order, and begins by freeing
// a random share of what is live. Within a phase a request that would exceed `live` first frees random blocks until it
// fits, and now and then a random block is freed anyway. At the end everything is freed, in random order.
//
// Marks: `phaseN` where a phase begins, `stepN` before every 1000th allocation.
//
// INVALID_ARGUMENT names the option as the command line spells it, its value and what was expected. The same
// configuration gives the same trace on every run. O(events).
[[nodiscard]] absl::StatusOr<Trace> GenerateRandom(const RandomConfig& config);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_RANDOM_H_

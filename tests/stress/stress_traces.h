// The traces that stress programs run.

#ifndef EXPANSE_TESTS_STRESS_STRESS_TRACES_H_
#define EXPANSE_TESTS_STRESS_STRESS_TRACES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/generate/llama_config.h"
#include "bench/trace/trace.h"

namespace expanse::stress {

// A Llama scaled down to some hundred MiB, so that every block can be held in real memory, in which blocks still are
// from a few bytes to several chunks large. `seed` draws the lengths where they vary.
[[nodiscard]] absl::StatusOr<bench::Trace> SmallLlama(bench::VarySeq vary_seq, uint64_t seed);
// The first pipeline stage of Llama-2 70B in training, gradients released after each step: 62 GiB.
[[nodiscard]] absl::StatusOr<bench::Trace> FullLlama(bench::VarySeq vary_seq, uint64_t seed);
// Random sizes up to 16 MiB on three streams, at most 256 MiB live.
[[nodiscard]] absl::StatusOr<bench::Trace> SmallRandom(uint64_t events, uint64_t seed);
// Random sizes up to 1 GiB, at most 40 GiB live.
[[nodiscard]] absl::StatusOr<bench::Trace> FullRandom(uint64_t seed);

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_STRESS_TRACES_H_

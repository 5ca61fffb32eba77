// The allocations of one rank in Llama-2 style pretraining, computed from the model's shapes.
//
// What is traced: parameters and rotary tables at the start, then training steps under the interleaved 1F1B schedule,
// each with its optimizer step. The first step is also the warm-up: matrix product workspaces, gradients, master
// weights and Adam moments appear in it, each where it is first needed. Stream 0 computes, stream 1 receives from other
// stages.
//
// Marks: `init_end`, then for each step k `stepK` and `optK` (its optimizer begins), then `end`.
// Without varying lengths the events are exactly those of gen_llama.py with the same options; with them the lengths
// come from the same distribution, but from this library's own generator of random numbers.

#ifndef EXPANSE_BENCH_GENERATE_LLAMA_H_
#define EXPANSE_BENCH_GENERATE_LLAMA_H_

#include "absl/status/statusor.h"
#include "bench/generate/llama_config.h"
#include "bench/trace/trace.h"

namespace expanse::bench {

// INVALID_ARGUMENT as Validate says. The same configuration gives the same trace everywhere. O(events).
[[nodiscard]] absl::StatusOr<Trace> GenerateLlama(const LlamaConfig& config);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_LLAMA_H_

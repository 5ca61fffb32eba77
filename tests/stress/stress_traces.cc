#include "tests/stress/stress_traces.h"

#include "bench/generate/llama.h"
#include "bench/generate/random.h"

namespace expanse::stress {

absl::StatusOr<bench::Trace> SmallLlama(bench::VarySeq vary_seq, uint64_t seed) {
  bench::LlamaConfig config;
  config.tp = 2;
  config.pp = 2;
  config.vpp = 2;
  config.mbs = 1;
  config.acc = 8;
  config.seq = 512;
  config.steps = 3;
  config.layers = 8;
  config.hidden = 1024;
  config.ffn = 3584;
  config.heads = 16;
  config.kv_heads = 4;
  config.vocab = 8000;
  config.release_grads = true;
  config.vary_seq = vary_seq;
  config.cublas_ws = MiB(4);
  config.cublaslt_ws = KiB(128);
  config.seed = seed;
  return bench::GenerateLlama(config);
}

absl::StatusOr<bench::Trace> FullLlama(bench::VarySeq vary_seq, uint64_t seed) {
  bench::LlamaConfig config;
  config.steps = 3;
  config.release_grads = true;
  config.vary_seq = vary_seq;
  config.seed = seed;
  return bench::GenerateLlama(config);
}

absl::StatusOr<bench::Trace> SmallRandom(uint64_t events, uint64_t seed) {
  bench::RandomConfig config;
  config.events = events;
  config.live = MiB(256);
  config.max_size = MiB(16);
  config.phases = 4;
  config.streams = 3;
  config.seed = seed;
  return bench::GenerateRandom(config);
}

absl::StatusOr<bench::Trace> FullRandom(uint64_t seed) {
  bench::RandomConfig config;
  config.seed = seed;
  return bench::GenerateRandom(config);
}

}  // namespace expanse::stress

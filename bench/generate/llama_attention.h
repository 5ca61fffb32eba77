// The inner attention of one layer: what its forward pass keeps and what its backward pass needs.

#ifndef EXPANSE_BENCH_GENERATE_LLAMA_ATTENTION_H_
#define EXPANSE_BENCH_GENERATE_LLAMA_ATTENTION_H_

#include <vector>

#include "bench/generate/llama_config.h"
#include "bench/generate/llama_shapes.h"
#include "bench/generate/llama_weights.h"
#include "bench/generate/trace_builder.h"

namespace expanse::bench {

// Allocates what attention over this rank's heads allocates, for flash attention or for the plain algorithm that keeps
// the matrix of scores. Stateless but for its references, which must outlive it.
class LlamaAttention {
 public:
  LlamaAttention(const LlamaConfig& config, TraceBuilder& trace, LlamaWeights& weights)
      : kind_(config.attn), dimensions_(config), trace_(trace), weights_(weights) {}

  struct Output {
    BlockId out;                 // [s, b, a/t, d]
    std::vector<BlockId> inner;  // kept for the backward pass, unless it is to be computed again
  };
  [[nodiscard]] Output Forward(const ActivationSizes& sizes);

  struct Gradients {
    BlockId query, key, value;
  };
  [[nodiscard]] Gradients Backward(const ActivationSizes& sizes);

 private:
  Output FlashForward(const ActivationSizes& sizes);
  Output NaiveForward(const ActivationSizes& sizes);
  Gradients FlashBackward(const ActivationSizes& sizes);
  Gradients NaiveBackward(const ActivationSizes& sizes);

  const Attention kind_;
  const ModelDimensions dimensions_;
  TraceBuilder& trace_;
  LlamaWeights& weights_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_LLAMA_ATTENTION_H_

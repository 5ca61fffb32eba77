// One transformer layer: attention and MLP with sequence parallelism, forward and backward.

#ifndef EXPANSE_BENCH_GENERATE_LLAMA_LAYER_H_
#define EXPANSE_BENCH_GENERATE_LLAMA_LAYER_H_

#include <optional>
#include <vector>

#include "bench/generate/llama_attention.h"
#include "bench/generate/llama_config.h"
#include "bench/generate/llama_shapes.h"
#include "bench/generate/llama_weights.h"
#include "bench/generate/trace_builder.h"

namespace expanse::bench {

// Allocates and frees what a layer does in each pass. All layers of a rank are alike, so one object serves them all.
// Stateless but for its references, which must outlive it.
class LlamaLayer {
 public:
  LlamaLayer(const LlamaConfig& config, TraceBuilder& trace, LlamaWeights& weights)
      : recompute_(config.recompute), trace_(trace), weights_(weights), attention_(config, trace, weights) {}

  // What the forward pass leaves for the backward pass besides the layer's input.
  struct Activations {
    BlockId attention_rms, attention_normed;
    BlockId query, key, value, attention_out;
    std::vector<BlockId> attention_inner;  // empty where it is computed again
    BlockId residual;
    BlockId mlp_rms, mlp_normed;
    BlockId gate_up;
    std::optional<BlockId> swiglu;  // none where it is computed again
  };
  struct Saved {
    BlockId input;
    std::optional<Activations> activations;  // none where the whole layer is computed again
  };
  struct Output {
    Saved saved;
    BlockId out;  // [s/t, b, h]
  };

  // `input` [s/t, b, h] stays live: it is among what is saved.
  [[nodiscard]] Output Forward(BlockId input, const ActivationSizes& sizes);

  // Takes the gradient of the output and frees it, and everything saved, the input included. Returns the gradient of
  // the input.
  [[nodiscard]] BlockId Backward(const LayerWeights& layer, Saved saved, BlockId output_gradient,
                                 const ActivationSizes& sizes);

 private:
  struct FullOutput {
    Activations activations;
    BlockId out;
  };
  // `drop_selected`: what selective recomputation leaves out is freed on the way.
  FullOutput ForwardKeepingAll(const ActivationSizes& sizes, bool drop_selected);
  void FreeAll(const Activations& activations);
  // Each takes the gradient of its part's output and returns that of its input, the residual stream.
  BlockId MlpBackward(const LayerWeights& layer, const Activations& saved, BlockId output_gradient,
                      const ActivationSizes& sizes);
  BlockId AttentionBackward(const LayerWeights& layer, BlockId input, const Activations& saved,
                            BlockId residual_gradient, const ActivationSizes& sizes);

  const Recompute recompute_;
  TraceBuilder& trace_;
  LlamaWeights& weights_;
  LlamaAttention attention_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_LLAMA_LAYER_H_

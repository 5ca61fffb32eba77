// One model chunk: its layers, and the embedding before the first and the head and loss after the last of them.

#ifndef EXPANSE_BENCH_GENERATE_LLAMA_CHUNK_H_
#define EXPANSE_BENCH_GENERATE_LLAMA_CHUNK_H_

#include <optional>
#include <vector>

#include "bench/generate/llama_config.h"
#include "bench/generate/llama_layer.h"
#include "bench/generate/llama_shapes.h"
#include "bench/generate/llama_weights.h"
#include "bench/generate/trace_builder.h"

namespace expanse::bench {

// Allocates and frees what a micro batch does in a chunk. Which chunk it is shows in its weights: one with an embedding
// is the model's first and takes no input, one with a head is its last and has no output. One object serves all chunks.
// Stateless but for its references, which must outlive it.
class LlamaChunk {
 public:
  LlamaChunk(const LlamaConfig& config, TraceBuilder& trace, LlamaWeights& weights)
      : trace_(trace), weights_(weights), layer_(config, trace, weights) {}

  // What the head leaves for its backward pass.
  struct Loss {
    BlockId input, inverse_rms, normed;
    BlockId labels, softmax, target_mask, target, mean;
  };
  // What a micro batch leaves in the chunk between its two passes.
  struct Saved {
    std::optional<BlockId> token_ids;
    std::vector<LlamaLayer::Saved> layers;
    std::optional<Loss> loss;
  };
  struct Output {
    Saved saved;
    std::optional<BlockId> out;  // [s/t, b, h], for the next stage
  };

  // `input` [s/t, b, h] was received from the stage before; it becomes part of what is saved.
  [[nodiscard]] Output Forward(const ChunkWeights& chunk, std::optional<BlockId> input, const ActivationSizes& sizes);

  // Takes the gradient of the output, received from the stage behind, and frees it and what was saved. Returns the
  // gradient of the input, for the stage before.
  [[nodiscard]] std::optional<BlockId> Backward(const ChunkWeights& chunk, Saved saved,
                                                std::optional<BlockId> output_gradient, const ActivationSizes& sizes);

 private:
  struct Embedded {
    BlockId token_ids;
    BlockId out;
  };
  Embedded EmbeddingForward(const ActivationSizes& sizes);
  void EmbeddingBackward(const ChunkWeights& chunk, BlockId token_ids, BlockId gradient, const ActivationSizes& sizes);
  Loss LossForward(BlockId input, const ActivationSizes& sizes);
  BlockId LossBackward(const ChunkWeights& chunk, const Loss& loss, const ActivationSizes& sizes);

  TraceBuilder& trace_;
  LlamaWeights& weights_;
  LlamaLayer layer_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_LLAMA_CHUNK_H_

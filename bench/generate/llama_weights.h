// What outlives a micro batch: parameters, gradients, optimizer states and matrix product workspaces.

#ifndef EXPANSE_BENCH_GENERATE_LLAMA_WEIGHTS_H_
#define EXPANSE_BENCH_GENERATE_LLAMA_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/generate/llama_config.h"
#include "bench/generate/llama_shapes.h"
#include "bench/generate/trace_builder.h"

namespace expanse::bench {

// Names a weight within LlamaWeights.
using WeightIndex = size_t;

struct LayerWeights {
  WeightIndex attention_norm, qkv, out, mlp_norm, gate_up, down;
};

struct ChunkWeights {
  std::optional<WeightIndex> embedding;  // the model's first chunk alone
  std::vector<LayerWeights> layers;
  std::optional<WeightIndex> final_norm, head;  // the model's last chunk alone
};

// The weights of every model chunk of one rank, and what training keeps for each. Not thread-safe.
class LlamaWeights {
 public:
  // Allocates the bf16 parameters and the rotary tables. Both references must outlive this.
  LlamaWeights(const LlamaConfig& config, TraceBuilder& trace);

  [[nodiscard]] const ChunkWeights& chunk(size_t index) const { return chunks_[index]; }

  // Call at each matrix product: the first one allocates cuBLAS's workspaces, which are then kept.
  void MatrixProduct();

  // The weight's gradient is computed and added to its main gradient, which appears with the first one.
  void AccumulateGradient(WeightIndex weight);

  // Allocates the fp32 master weights now instead of in the first optimizer step.
  void CreateMasterWeights();

  // One step of Adam with the gradients clipped by their norm.
  void OptimizerStep();

 private:
  struct Weight {
    uint64_t elements;
    bool is_norm;
    // Its gradient comes from a matrix product that can accumulate into the main gradient by itself.
    bool from_matrix_product;
    std::optional<BlockId> gradient;
    bool has_master = false;
    bool has_moments = false;
  };
  enum class Kind { kNorm, kEmbedding, kMatrix };

  WeightIndex Create(uint64_t elements, Kind kind);
  void CreateMaster(Weight& weight);
  void CreateMoments(Weight& weight);
  void ReduceNormGradients();
  // This rank's share of an optimizer state, fp32.
  [[nodiscard]] Bytes StateSize(const Weight& weight) const;

  const LlamaConfig& config_;
  TraceBuilder& trace_;
  const uint64_t gradient_element_;  // bytes
  std::vector<Weight> weights_;      // in order of creation
  std::vector<ChunkWeights> chunks_;
  bool has_workspaces_ = false;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_LLAMA_WEIGHTS_H_

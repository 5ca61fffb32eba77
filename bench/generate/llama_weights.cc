#include "bench/generate/llama_weights.h"

namespace expanse::bench {

LlamaWeights::LlamaWeights(const LlamaConfig& config, TraceBuilder& trace)
    : config_(config), trace_(trace), gradient_element_(config.grad_dtype == GradDtype::kFp32 ? kFp32 : kBf16) {
  const ModelDimensions m(config);
  const WeightElements elements(m);
  const auto chunks = static_cast<size_t>(config.vpp);
  for (size_t c = 0; c < chunks; ++c) {
    ChunkWeights& chunk = chunks_.emplace_back();
    if (config.rank == 0 && c == 0) chunk.embedding = Create(elements.embedding, Kind::kEmbedding);
    for (uint64_t l = 0; l < m.layers_per_chunk; ++l) {
      LayerWeights& layer = chunk.layers.emplace_back();
      layer.attention_norm = Create(elements.norm, Kind::kNorm);
      layer.qkv = Create(elements.qkv, Kind::kMatrix);
      layer.out = Create(elements.out, Kind::kMatrix);
      layer.mlp_norm = Create(elements.norm, Kind::kNorm);
      layer.gate_up = Create(elements.gate_up, Kind::kMatrix);
      layer.down = Create(elements.down, Kind::kMatrix);
    }
    if (config.rank == config.pp - 1 && c == chunks - 1) {
      chunk.final_norm = Create(elements.norm, Kind::kNorm);
      chunk.head = Create(elements.head, Kind::kMatrix);
    }
    // Each layer has a cosine and a sine table [s, d] fp32 of its own.
    const Bytes rotary_table(kFp32 * static_cast<uint64_t>(config.seq) * m.d);
    for (uint64_t l = 0; l < m.layers_per_chunk; ++l) {
      trace_.Allocate(rotary_table);
      trace_.Allocate(rotary_table);
    }
  }
}

WeightIndex LlamaWeights::Create(uint64_t elements, Kind kind) {
  std::optional<BlockId> before_cast;
  if (config_.init_fp32) before_cast = trace_.Allocate(Bytes(kFp32 * elements));
  trace_.Allocate(Bytes(kBf16 * elements));
  if (before_cast.has_value()) trace_.Free(*before_cast);
  Weight weight{};
  weight.elements = elements;
  weight.is_norm = kind == Kind::kNorm;
  weight.from_matrix_product = kind == Kind::kMatrix;
  weights_.push_back(weight);
  return weights_.size() - 1;
}

void LlamaWeights::MatrixProduct() {
  if (has_workspaces_) return;
  has_workspaces_ = true;
  trace_.Allocate(config_.cublas_ws);
  trace_.Allocate(config_.cublaslt_ws);
}

void LlamaWeights::AccumulateGradient(WeightIndex index) {
  Weight& weight = weights_[index];
  MatrixProduct();
  std::optional<BlockId> separate;  // the bf16 gradient, where it is not accumulated by the product itself
  if (!config_.fused_wgrad || !weight.from_matrix_product) separate = trace_.Allocate(Bytes(kBf16 * weight.elements));
  if (!weight.gradient.has_value()) weight.gradient = trace_.Allocate(Bytes(gradient_element_ * weight.elements));
  if (separate.has_value()) trace_.Free(*separate);
}

Bytes LlamaWeights::StateSize(const Weight& weight) const {
  const auto shards = static_cast<uint64_t>(config_.shard_dp);
  return Bytes(kFp32 * ((weight.elements + shards - 1) / shards));
}

void LlamaWeights::CreateMaster(Weight& weight) {
  weight.has_master = true;
  trace_.Allocate(StateSize(weight));
}

void LlamaWeights::CreateMoments(Weight& weight) {
  weight.has_moments = true;
  for (int moment = 0; moment < 2; ++moment) trace_.Allocate(StateSize(weight));
  for (int power = 0; power < 2; ++power) trace_.Allocate(Bytes(kFp32));  // the running powers of the two betas
}

void LlamaWeights::CreateMasterWeights() {
  for (Weight& weight : weights_) CreateMaster(weight);
}

// With sequence parallelism each rank has seen only its share of the sequence: the gradients of the norms are summed
// over t in one flat buffer.
void LlamaWeights::ReduceNormGradients() {
  if (config_.tp == 1) return;
  uint64_t elements = 0;
  for (const Weight& weight : weights_) elements += weight.is_norm ? weight.elements : 0;
  if (elements > 0) trace_.Free(trace_.Allocate(Bytes(gradient_element_ * elements)));
}

void LlamaWeights::OptimizerStep() {
  ReduceNormGradients();

  std::vector<BlockId> square_norms;  // one fp32 scalar for each gradient
  square_norms.reserve(weights_.size());
  for (size_t i = 0; i < weights_.size(); ++i) square_norms.push_back(trace_.Allocate(Bytes(kFp32)));
  const BlockId stacked = trace_.Allocate(Bytes(kFp32 * weights_.size()));
  trace_.Free(square_norms);
  const BlockId total = trace_.Allocate(Bytes(kFp32));
  trace_.Free(stacked);
  const BlockId clip_factor = trace_.Allocate(Bytes(kFp32));

  for (Weight& weight : weights_) {
    if (!weight.has_master) CreateMaster(weight);
    if (!weight.has_moments) CreateMoments(weight);
  }
  trace_.Free({total, clip_factor});

  if (!config_.release_grads) return;
  for (Weight& weight : weights_) {
    if (weight.gradient.has_value()) trace_.Free(*weight.gradient);
    weight.gradient.reset();
  }
}

}  // namespace expanse::bench

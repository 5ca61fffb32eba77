#include "bench/generate/llama_layer.h"

#include <utility>

namespace expanse::bench {

LlamaLayer::Output LlamaLayer::Forward(BlockId input, const ActivationSizes& sizes) {
  auto [activations, out] = ForwardKeepingAll(sizes, recompute_ == Recompute::kSelective);
  if (recompute_ == Recompute::kFull) {
    FreeAll(activations);
    return {{input, std::nullopt}, out};
  }
  return {{input, std::move(activations)}, out};
}

LlamaLayer::FullOutput LlamaLayer::ForwardKeepingAll(const ActivationSizes& sizes, bool drop_selected) {
  // Norm on this rank's share of the sequence, gathered over t for the product with the fused qkv weight.
  const BlockId attention_rms = trace_.Allocate(sizes.inverse_rms);
  const BlockId attention_normed = trace_.Allocate(sizes.hidden_shard);
  BlockId gathered = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  const BlockId fused = trace_.Allocate(sizes.qkv);
  trace_.Free(gathered);

  // Split into copies. The rotary embedding is out of place: the rotated query and key are what is kept.
  const BlockId unrotated_query = trace_.Allocate(sizes.query);
  const BlockId unrotated_key = trace_.Allocate(sizes.key);
  const BlockId value = trace_.Allocate(sizes.key);
  trace_.Free(fused);
  const BlockId query = trace_.Allocate(sizes.query);
  trace_.Free(unrotated_query);
  const BlockId key = trace_.Allocate(sizes.key);
  trace_.Free(unrotated_key);

  auto [attention_out, attention_inner] = attention_.Forward(sizes);
  if (drop_selected) {
    trace_.Free(attention_inner);
    attention_inner.clear();
  }

  // Output projection: partial sums, reduced and scattered over t, added to the residual stream.
  BlockId partial = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  BlockId scattered = trace_.Allocate(sizes.hidden_shard);
  trace_.Free(partial);
  const BlockId residual = trace_.Allocate(sizes.hidden_shard);
  trace_.Free(scattered);

  // MLP, in the same way: norm, gather, two products, scatter, residual sum.
  const BlockId mlp_rms = trace_.Allocate(sizes.inverse_rms);
  const BlockId mlp_normed = trace_.Allocate(sizes.hidden_shard);
  gathered = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  const BlockId gate_up = trace_.Allocate(sizes.gate_up);
  trace_.Free(gathered);
  std::optional<BlockId> swiglu = trace_.Allocate(sizes.swiglu);
  partial = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  if (drop_selected) {
    trace_.Free(*swiglu);
    swiglu.reset();
  }
  scattered = trace_.Allocate(sizes.hidden_shard);
  trace_.Free(partial);
  const BlockId out = trace_.Allocate(sizes.hidden_shard);
  trace_.Free(scattered);

  return {{attention_rms, attention_normed, query, key, value, attention_out, std::move(attention_inner), residual,
           mlp_rms, mlp_normed, gate_up, swiglu},
          out};
}

void LlamaLayer::FreeAll(const Activations& a) {
  trace_.Free({a.attention_rms, a.attention_normed, a.query, a.key, a.value, a.attention_out});
  trace_.Free(a.attention_inner);
  trace_.Free({a.residual, a.mlp_rms, a.mlp_normed, a.gate_up});
  if (a.swiglu.has_value()) trace_.Free(*a.swiglu);
}

BlockId LlamaLayer::Backward(const LayerWeights& layer, Saved saved, BlockId output_gradient,
                             const ActivationSizes& sizes) {
  if (!saved.activations.has_value()) {
    auto [activations, out] = ForwardKeepingAll(sizes, /*drop_selected=*/false);
    trace_.Free(out);
    saved.activations = std::move(activations);
  }
  Activations& activations = *saved.activations;
  if (!activations.swiglu.has_value()) activations.swiglu = trace_.Allocate(sizes.swiglu);
  const BlockId residual_gradient = MlpBackward(layer, activations, output_gradient, sizes);
  return AttentionBackward(layer, saved.input, activations, residual_gradient, sizes);
}

BlockId LlamaLayer::MlpBackward(const LayerWeights& layer, const Activations& saved, BlockId output_gradient,
                                const ActivationSizes& sizes) {
  // The gradient gathered over t serves both the down projection's input and its weight.
  BlockId gathered = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  const BlockId d_swiglu = trace_.Allocate(sizes.swiglu);
  weights_.AccumulateGradient(layer.down);
  trace_.Free({gathered, *saved.swiglu});
  const BlockId d_gate_up = trace_.Allocate(sizes.gate_up);
  trace_.Free({d_swiglu, saved.gate_up});

  // The normed input was kept as this rank's share: it is gathered again for the weight's gradient.
  gathered = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  const BlockId partial = trace_.Allocate(sizes.hidden);
  const BlockId scattered = trace_.Allocate(sizes.hidden_shard);
  weights_.AccumulateGradient(layer.gate_up);
  trace_.Free({partial, gathered, d_gate_up, saved.mlp_normed});

  const BlockId d_norm = trace_.Allocate(sizes.hidden_shard);
  weights_.AccumulateGradient(layer.mlp_norm);
  trace_.Free({scattered, saved.mlp_rms, saved.residual});
  const BlockId residual_gradient = trace_.Allocate(sizes.hidden_shard);
  trace_.Free({d_norm, output_gradient});
  return residual_gradient;
}

BlockId LlamaLayer::AttentionBackward(const LayerWeights& layer, BlockId input, const Activations& saved,
                                      BlockId residual_gradient, const ActivationSizes& sizes) {
  BlockId gathered = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  const BlockId d_attention_out = trace_.Allocate(sizes.query);
  weights_.AccumulateGradient(layer.out);
  trace_.Free(gathered);

  std::vector<BlockId> inner = saved.attention_inner;
  if (inner.empty()) {
    LlamaAttention::Output again = attention_.Forward(sizes);
    trace_.Free(again.out);
    inner = std::move(again.inner);
  }
  const LlamaAttention::Gradients rotated = attention_.Backward(sizes);
  trace_.Free({d_attention_out, saved.attention_out, saved.query, saved.key, saved.value});
  trace_.Free(inner);

  // Back through the rotary embedding, then joined into the gradient of the fused qkv output.
  const BlockId d_query = trace_.Allocate(sizes.query);
  const BlockId d_key = trace_.Allocate(sizes.key);
  trace_.Free({rotated.query, rotated.key});
  const BlockId d_fused = trace_.Allocate(sizes.qkv);
  trace_.Free({d_query, d_key, rotated.value});

  gathered = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  const BlockId partial = trace_.Allocate(sizes.hidden);
  const BlockId scattered = trace_.Allocate(sizes.hidden_shard);
  weights_.AccumulateGradient(layer.qkv);
  trace_.Free({partial, gathered, d_fused, saved.attention_normed});

  const BlockId d_norm = trace_.Allocate(sizes.hidden_shard);
  weights_.AccumulateGradient(layer.attention_norm);
  trace_.Free({scattered, saved.attention_rms, input});
  const BlockId input_gradient = trace_.Allocate(sizes.hidden_shard);
  trace_.Free({d_norm, residual_gradient});
  return input_gradient;
}

}  // namespace expanse::bench

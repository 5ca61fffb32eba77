#include "bench/generate/llama_chunk.h"

#include <utility>

namespace expanse::bench {

LlamaChunk::Output LlamaChunk::Forward(const ChunkWeights& chunk, std::optional<BlockId> input,
                                       const ActivationSizes& sizes) {
  Output output;
  std::optional<BlockId> stream = input;
  if (chunk.embedding.has_value()) {
    const Embedded embedded = EmbeddingForward(sizes);
    output.saved.token_ids = embedded.token_ids;
    stream = embedded.out;
  }
  for (size_t l = 0; l < chunk.layers.size(); ++l) {
    LlamaLayer::Output layer = layer_.Forward(*stream, sizes);
    output.saved.layers.push_back(std::move(layer.saved));
    stream = layer.out;
  }
  if (chunk.head.has_value()) {
    output.saved.loss = LossForward(*stream, sizes);
  } else {
    output.out = stream;
  }
  return output;
}

std::optional<BlockId> LlamaChunk::Backward(const ChunkWeights& chunk, Saved saved,
                                            std::optional<BlockId> output_gradient, const ActivationSizes& sizes) {
  std::optional<BlockId> gradient = output_gradient;
  if (saved.loss.has_value()) gradient = LossBackward(chunk, *saved.loss, sizes);
  for (size_t l = chunk.layers.size(); l-- > 0;) {
    gradient = layer_.Backward(chunk.layers[l], std::move(saved.layers[l]), *gradient, sizes);
  }
  if (!saved.token_ids.has_value()) return gradient;
  EmbeddingBackward(chunk, *saved.token_ids, *gradient, sizes);
  return std::nullopt;
}

LlamaChunk::Embedded LlamaChunk::EmbeddingForward(const ActivationSizes& sizes) {
  const BlockId token_ids = trace_.Allocate(sizes.token_ids);
  // Tokens outside this rank's share of the vocabulary are masked; the partial embeddings are summed and scattered.
  const BlockId mask = trace_.Allocate(sizes.token_mask);
  const BlockId partial = trace_.Allocate(sizes.hidden);
  trace_.Free(mask);
  const BlockId out = trace_.Allocate(sizes.hidden_shard);
  trace_.Free(partial);
  return {token_ids, out};
}

void LlamaChunk::EmbeddingBackward(const ChunkWeights& chunk, BlockId token_ids, BlockId gradient,
                                   const ActivationSizes& sizes) {
  const BlockId gathered = trace_.Allocate(sizes.hidden);
  trace_.Free(gradient);
  weights_.AccumulateGradient(*chunk.embedding);
  trace_.Free({gathered, token_ids});
}

LlamaChunk::Loss LlamaChunk::LossForward(BlockId input, const ActivationSizes& sizes) {
  const BlockId inverse_rms = trace_.Allocate(sizes.inverse_rms);
  const BlockId normed = trace_.Allocate(sizes.hidden_shard);
  const BlockId labels = trace_.Allocate(sizes.token_ids);
  const BlockId gathered = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  const BlockId logits = trace_.Allocate(sizes.logits_bf16);
  trace_.Free(gathered);

  // Cross entropy over a vocabulary split over t, in fp32: maximum, exponentials, their sum and the target's logit.
  const BlockId wide_logits = trace_.Allocate(sizes.logits_fp32);
  trace_.Free(logits);
  const BlockId maximum = trace_.Allocate(sizes.token_fp32);
  const BlockId softmax = trace_.Allocate(sizes.logits_fp32);
  trace_.Free({wide_logits, maximum});
  const BlockId sum = trace_.Allocate(sizes.token_fp32);
  const BlockId target_logit = trace_.Allocate(sizes.token_fp32);
  const BlockId target_mask = trace_.Allocate(sizes.token_mask);
  const BlockId target = trace_.Allocate(sizes.token_ids);
  const BlockId per_token = trace_.Allocate(sizes.token_fp32);
  trace_.Free({sum, target_logit});
  const BlockId mean = trace_.Allocate(Bytes(kFp32));
  trace_.Free(per_token);
  return {input, inverse_rms, normed, labels, softmax, target_mask, target, mean};
}

BlockId LlamaChunk::LossBackward(const ChunkWeights& chunk, const Loss& loss, const ActivationSizes& sizes) {
  const BlockId d_wide_logits = trace_.Allocate(sizes.logits_fp32);
  trace_.Free({loss.softmax, loss.target_mask, loss.target, loss.mean, loss.labels});
  const BlockId d_logits = trace_.Allocate(sizes.logits_bf16);
  trace_.Free(d_wide_logits);

  const BlockId gathered = trace_.Allocate(sizes.hidden);
  weights_.MatrixProduct();
  const BlockId partial = trace_.Allocate(sizes.hidden);
  const BlockId scattered = trace_.Allocate(sizes.hidden_shard);
  weights_.AccumulateGradient(*chunk.head);
  trace_.Free({partial, gathered, d_logits, loss.normed});
  const BlockId gradient = trace_.Allocate(sizes.hidden_shard);
  weights_.AccumulateGradient(*chunk.final_norm);
  trace_.Free({scattered, loss.inverse_rms, loss.input});
  return gradient;
}

}  // namespace expanse::bench

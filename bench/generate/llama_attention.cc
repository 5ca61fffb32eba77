#include "bench/generate/llama_attention.h"

namespace expanse::bench {

LlamaAttention::Output LlamaAttention::Forward(const ActivationSizes& sizes) {
  return kind_ == Attention::kFlash ? FlashForward(sizes) : NaiveForward(sizes);
}

LlamaAttention::Gradients LlamaAttention::Backward(const ActivationSizes& sizes) {
  return kind_ == Attention::kFlash ? FlashBackward(sizes) : NaiveBackward(sizes);
}

LlamaAttention::Output LlamaAttention::FlashForward(const ActivationSizes& sizes) {
  const BlockId out = trace_.Allocate(sizes.query);
  const BlockId log_sum_exp = trace_.Allocate(sizes.log_sum_exp);
  const BlockId random_state = trace_.Allocate(Bytes(2 * kInt64));  // seed and offset of the dropout's generator
  return {out, {log_sum_exp, random_state}};
}

LlamaAttention::Output LlamaAttention::NaiveForward(const ActivationSizes& sizes) {
  // Key and value are repeated for every query head.
  const BlockId key = trace_.Allocate(sizes.query);
  const BlockId value = trace_.Allocate(sizes.query);
  const BlockId scores = trace_.Allocate(sizes.scores);
  weights_.MatrixProduct();
  const BlockId probabilities = trace_.Allocate(sizes.scores);
  trace_.Free(scores);
  const BlockId out = trace_.Allocate(sizes.query);
  return {out, {key, value, probabilities}};
}

LlamaAttention::Gradients LlamaAttention::FlashBackward(const ActivationSizes& sizes) {
  const BlockId delta = trace_.Allocate(sizes.flash_delta);
  const BlockId accumulator = trace_.Allocate(sizes.flash_dq);
  const BlockId query = trace_.Allocate(sizes.query);
  // Where query heads share a key head, the kernel writes a gradient for each query head, to be summed afterwards.
  std::vector<BlockId> per_query_head;
  if (dimensions_.g_local != dimensions_.a_local) {
    per_query_head = {trace_.Allocate(sizes.query), trace_.Allocate(sizes.query)};
  }
  const BlockId key = trace_.Allocate(sizes.key);
  const BlockId value = trace_.Allocate(sizes.key);
  trace_.Free(per_query_head);
  trace_.Free({accumulator, delta});
  return {query, key, value};
}

LlamaAttention::Gradients LlamaAttention::NaiveBackward(const ActivationSizes& sizes) {
  const BlockId d_probabilities = trace_.Allocate(sizes.scores);
  weights_.MatrixProduct();
  const BlockId value_per_query_head = trace_.Allocate(sizes.query);
  const BlockId d_scores = trace_.Allocate(sizes.scores);
  trace_.Free(d_probabilities);
  const BlockId query = trace_.Allocate(sizes.query);
  const BlockId key_per_query_head = trace_.Allocate(sizes.query);
  trace_.Free(d_scores);
  const BlockId key = trace_.Allocate(sizes.key);
  const BlockId value = trace_.Allocate(sizes.key);
  trace_.Free({key_per_query_head, value_per_query_head});
  return {query, key, value};
}

}  // namespace expanse::bench

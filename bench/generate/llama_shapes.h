// Sizes of the tensors of a Llama-2 style model on one rank.
//
// Symbols, here and in the files that use these shapes: s sequence, b micro batch, h hidden, f ffn, a attention heads,
// g key and value heads, d elements of a head, V vocabulary, t tensor parallel ranks. A size is what the program asks
// for. Between the tensor parallel regions activations are split along the sequence (sequence parallelism): [s/t, b,
// h].

#ifndef EXPANSE_BENCH_GENERATE_LLAMA_SHAPES_H_
#define EXPANSE_BENCH_GENERATE_LLAMA_SHAPES_H_

#include <cstdint>

#include "bench/generate/llama_config.h"
#include "vmm/units.h"

namespace expanse::bench {

// Bytes of one element.
inline constexpr uint64_t kBf16 = 2;
inline constexpr uint64_t kFp32 = 4;
inline constexpr uint64_t kInt64 = 8;

// The dimensions that every shape is made of, this rank's shares where tensor parallelism splits them.
struct ModelDimensions {
  explicit ModelDimensions(const LlamaConfig& config);

  uint64_t t, h, f, V, b;
  uint64_t d;        // h/a
  uint64_t a_local;  // a/t
  uint64_t g_local;  // g/t, at least 1: with fewer heads than ranks each rank has a copy
  uint64_t layers_per_chunk;
};

// Elements of this rank's share of each weight.
struct WeightElements {
  explicit WeightElements(const ModelDimensions& m);

  uint64_t embedding;  // [V/t, h]
  uint64_t norm;       // [h]
  uint64_t qkv;        // [h, (a+2g)d/t], query, key and value fused
  uint64_t out;        // [ad/t, h]
  uint64_t gate_up;    // [h, 2f/t], gate and up fused
  uint64_t down;       // [f/t, h]
  uint64_t head;       // [h, V/t]
};

// Activations of one micro batch, and the gradients of the same shapes.
struct ActivationSizes {
  ActivationSizes(const ModelDimensions& m, uint64_t s);

  Bytes hidden;        // [s, b, h] bf16, gathered over t or partial sums before they are scattered
  Bytes hidden_shard;  // [s/t, b, h] bf16
  Bytes inverse_rms;   // [s/t, b] fp32
  Bytes qkv;           // [s, b, (a+2g)d/t] bf16
  Bytes query;         // [s, b, a/t, d] bf16; the attention output too
  Bytes key;           // [s, b, g/t, d] bf16; the value too
  Bytes gate_up;       // [s, b, 2f/t] bf16
  Bytes swiglu;        // [s, b, f/t] bf16: silu(gate) * up

  // Attention. s128 is s rounded up to 128, as flash attention does in its workspaces.
  Bytes log_sum_exp;  // [b, a/t, s] fp32
  Bytes flash_delta;  // [b, a/t, s128] fp32: row sums of d(out) * out
  Bytes flash_dq;     // [b, s128, a/t, d] fp32: accumulates the query gradient
  Bytes scores;       // [b, a/t, s, s] bf16, without flash attention

  // Embedding, head and loss.
  Bytes token_ids;    // [b, s] int64; labels too
  Bytes token_mask;   // [b, s] bool
  Bytes token_fp32;   // [s, b] fp32: one figure for each token
  Bytes logits_bf16;  // [s, b, V/t]
  Bytes logits_fp32;  // [s, b, V/t]
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_LLAMA_SHAPES_H_

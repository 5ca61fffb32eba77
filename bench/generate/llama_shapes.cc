#include "bench/generate/llama_shapes.h"

#include <algorithm>

namespace expanse::bench {

ModelDimensions::ModelDimensions(const LlamaConfig& config)
    : t(static_cast<uint64_t>(config.tp)),
      h(static_cast<uint64_t>(config.hidden)),
      f(static_cast<uint64_t>(config.ffn)),
      V(static_cast<uint64_t>(config.vocab)),
      b(static_cast<uint64_t>(config.mbs)),
      d(static_cast<uint64_t>(config.hidden / config.heads)),
      a_local(static_cast<uint64_t>(config.heads / config.tp)),
      g_local(static_cast<uint64_t>(std::max<int64_t>(1, config.kv_heads / config.tp))),
      layers_per_chunk(static_cast<uint64_t>(config.layers / (config.pp * config.vpp))) {}

WeightElements::WeightElements(const ModelDimensions& m)
    : embedding(m.V / m.t * m.h),
      norm(m.h),
      qkv(m.h * (m.a_local + 2 * m.g_local) * m.d),
      out(m.a_local * m.d * m.h),
      gate_up(m.h * 2 * m.f / m.t),
      down(m.f / m.t * m.h),
      head(m.h * m.V / m.t) {}

ActivationSizes::ActivationSizes(const ModelDimensions& m, uint64_t s) {
  const uint64_t n = s * m.b;  // tokens
  hidden = Bytes(kBf16 * n * m.h);
  hidden_shard = Bytes(kBf16 * n / m.t * m.h);
  inverse_rms = Bytes(kFp32 * n / m.t);
  qkv = Bytes(kBf16 * n * (m.a_local + 2 * m.g_local) * m.d);
  query = Bytes(kBf16 * n * m.a_local * m.d);
  key = Bytes(kBf16 * n * m.g_local * m.d);
  gate_up = Bytes(kBf16 * n * 2 * m.f / m.t);
  swiglu = Bytes(kBf16 * n * m.f / m.t);

  const uint64_t s128 = RoundUp(Bytes(s), Bytes(128)).count();
  log_sum_exp = Bytes(kFp32 * n * m.a_local);
  flash_delta = Bytes(kFp32 * m.b * m.a_local * s128);
  flash_dq = Bytes(kFp32 * m.b * s128 * m.a_local * m.d);
  scores = Bytes(kBf16 * m.b * m.a_local * s * s);

  token_ids = Bytes(kInt64 * n);
  token_mask = Bytes(n);
  token_fp32 = Bytes(kFp32 * n);
  logits_bf16 = Bytes(kBf16 * n * m.V / m.t);
  logits_fp32 = Bytes(kFp32 * n * m.V / m.t);
}

}  // namespace expanse::bench

// What `generate llama` can be told. Names, defaults and meanings are those of gen_llama.py's options.

#ifndef EXPANSE_BENCH_GENERATE_LLAMA_CONFIG_H_
#define EXPANSE_BENCH_GENERATE_LLAMA_CONFIG_H_

#include <cstdint>

#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse::bench {

// What the forward pass keeps for the backward pass.
enum class Recompute {
  kNone,       // everything
  kSelective,  // all but the inner attention tensors and the output of the activation function
  kFull,       // the input of each layer alone
};
enum class Attention { kFlash, kNaive };
enum class GradDtype { kFp32, kBf16 };
// When the fp32 master weights appear: at the end of the first step, or before it.
enum class MasterWeights { kLazy, kInit };
// Whether the sequence length changes: never, from step to step, or from micro batch to micro batch.
enum class VarySeq { kNone, kStep, kMicro };

// One tensor-parallel rank of one pipeline stage of a Llama-2 style model in training. The defaults are Llama-2 70B on
// 4-way tensor, 8-way pipeline parallelism with 5 model chunks a stage.
struct LlamaConfig {
  int64_t tp = 4;    // tensor parallel ranks; with sequence parallelism
  int64_t pp = 8;    // pipeline stages
  int64_t vpp = 5;   // model chunks per stage (virtual pipeline)
  int64_t rank = 0;  // this pipeline stage
  int64_t mbs = 1;   // sequences in a micro batch
  int64_t acc = 32;  // micro batches accumulated in a step
  int64_t seq = 4096;
  int64_t steps = 4;
  int64_t layers = 80;
  int64_t hidden = 8192;
  int64_t ffn = 28672;
  int64_t heads = 64;
  int64_t kv_heads = 8;
  int64_t vocab = 32000;
  bool release_grads = false;  // gradient buffers are freed after each optimizer step
  Recompute recompute = Recompute::kNone;
  Attention attn = Attention::kFlash;
  GradDtype grad_dtype = GradDtype::kFp32;
  bool fused_wgrad = true;  // matrix products accumulate straight into the main gradient
  int64_t shard_dp = 1;     // ranks over which master weights and Adam moments are sharded
  MasterWeights master = MasterWeights::kLazy;
  bool init_fp32 = false;  // each parameter is created in fp32 and then cast
  VarySeq vary_seq = VarySeq::kNone;
  double vary_min = 0.5;       // shortest sequence, as a share of `seq`
  int64_t vary_multiple = 64;  // lengths are multiples of this
  bool overlap_p2p = true;     // the receive of the next slot is posted one slot ahead
  Bytes cublas_ws = MiB(32);
  Bytes cublaslt_ws = MiB(1);
  uint64_t seed = 0;  // of the varying lengths
};

// OK, or INVALID_ARGUMENT naming the option as the command line spells it, its value and what was expected. What passes
// divides where the schedule needs it to, gives no tensor of zero bytes, and overflows nowhere. Shares of heads, ffn
// and vocab that tp does not divide are rounded down. O(1).
[[nodiscard]] absl::Status Validate(const LlamaConfig& config);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_LLAMA_CONFIG_H_

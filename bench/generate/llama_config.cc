#include "bench/generate/llama_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/generate/option_error.h"
#include "bench/generate/trace_builder.h"

namespace expanse::bench {
namespace {

// Dimensions are bounded so that products of two of them fit 64 bits.
constexpr int64_t kMaxDimension = (int64_t{1} << 31) - 1;

absl::Status CheckRanges(const LlamaConfig& c) {
  const struct {
    const char* option;
    int64_t value;
  } positive[] = {{"tp", c.tp},
                  {"pp", c.pp},
                  {"vpp", c.vpp},
                  {"mbs", c.mbs},
                  {"acc", c.acc},
                  {"seq", c.seq},
                  {"steps", c.steps},
                  {"layers", c.layers},
                  {"hidden", c.hidden},
                  {"ffn", c.ffn},
                  {"heads", c.heads},
                  {"kv-heads", c.kv_heads},
                  {"vocab", c.vocab},
                  {"shard-dp", c.shard_dp},
                  {"vary-multiple", c.vary_multiple}};
  for (const auto& [option, value] : positive) {
    if (value < 1 || value > kMaxDimension)
      return UnexpectedOption(option, value, absl::StrCat("1 to ", kMaxDimension));
  }
  if (c.rank < 0 || c.rank >= c.pp) return UnexpectedOption("rank", c.rank, absl::StrCat("0 to pp - 1 = ", c.pp - 1));
  if (!(c.vary_min >= 0 && c.vary_min <= 1)) return UnexpectedOption("vary-min", c.vary_min, "a share from 0 to 1");
  if (c.cublas_ws.is_zero()) return UnexpectedOption("cublas-ws", 0, "at least 1 byte");
  if (c.cublaslt_ws.is_zero()) return UnexpectedOption("cublaslt-ws", 0, "at least 1 byte");
  return absl::OkStatus();
}

absl::Status CheckDivisions(const LlamaConfig& c) {
  if (c.layers % (c.pp * c.vpp) != 0) {
    return UnexpectedOption("layers", c.layers, absl::StrCat("a multiple of pp * vpp = ", c.pp * c.vpp));
  }
  if (c.seq % c.tp != 0) return UnexpectedOption("seq", c.seq, absl::StrCat("a multiple of tp = ", c.tp));
  if (c.vary_seq != VarySeq::kNone && c.vary_multiple % c.tp != 0) {
    return UnexpectedOption("vary-multiple", c.vary_multiple, absl::StrCat("a multiple of tp = ", c.tp));
  }
  if (c.vpp > 1 && c.acc % c.pp != 0) {
    return UnexpectedOption("acc", c.acc, absl::StrCat("a multiple of pp = ", c.pp, " where vpp is above 1"));
  }
  // Each rank has a share of at least one.
  if (c.heads < c.tp) return UnexpectedOption("heads", c.heads, absl::StrCat("at least tp = ", c.tp));
  if (c.ffn < c.tp) return UnexpectedOption("ffn", c.ffn, absl::StrCat("at least tp = ", c.tp));
  if (c.vocab < c.tp) return UnexpectedOption("vocab", c.vocab, absl::StrCat("at least tp = ", c.tp));
  if (c.hidden < c.heads) return UnexpectedOption("hidden", c.hidden, absl::StrCat("at least heads = ", c.heads));
  return absl::OkStatus();
}

// Bounds from above, in floating point: they need not be exact, and cannot overflow.
double EventsBound(const LlamaConfig& c) {
  const double layers = static_cast<double>(c.layers / c.pp);
  const double passes = static_cast<double>(c.steps) * static_cast<double>(c.acc);
  constexpr double kPerLayer = 200;  // forward, again where recomputed, and backward
  constexpr double kPerChunk = 60;   // embedding, head, loss, receives
  constexpr double kPerWeight = 16;  // master, moments, norm, gradient
  return passes * (layers * kPerLayer + static_cast<double>(c.vpp) * kPerChunk) +
         static_cast<double>(c.steps) * (6 * layers + 3) * kPerWeight;
}

double LargestTensorBound(const LlamaConfig& c) {
  const auto h = static_cast<double>(c.hidden);
  const auto heads = static_cast<double>(c.heads);
  const double d = h / heads;
  const double s = static_cast<double>(std::max(c.seq, c.vary_multiple)) + 127;  // flash attention rounds up to 128
  const double n = s * static_cast<double>(c.mbs);
  // Elements for each token or each hidden unit, before tensor parallelism divides them.
  const double width = std::max({static_cast<double>(c.vocab), 2 * static_cast<double>(c.ffn),
                                 (heads + 2 * static_cast<double>(c.kv_heads)) * d, h});
  double elements = std::max({n, h, static_cast<double>(c.layers)}) * width * 2;
  if (c.attn == Attention::kNaive) elements = std::max(elements, n * heads * s);
  return std::max({8 * elements, static_cast<double>(c.cublas_ws.count()), static_cast<double>(c.cublaslt_ws.count())});
}

}  // namespace

absl::Status Validate(const LlamaConfig& config) {
  if (absl::Status status = CheckRanges(config); !status.ok()) return status;
  if (absl::Status status = CheckDivisions(config); !status.ok()) return status;
  const double events = EventsBound(config);
  if (events > static_cast<double>(kMaxGeneratedEvents)) {
    return UnexpectedOption("steps", config.steps,
                            absl::StrCat("at most ", kMaxGeneratedEvents,
                                         " events in all; --acc, --layers and --steps give up to ", events));
  }
  // Then no sum over the whole trace overflows either.
  constexpr double kMaxSum = 0x1.0p62;
  const double largest = LargestTensorBound(config);
  if (largest * events > kMaxSum) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hidden ", config.hidden, " --ffn ", config.ffn, " --vocab ", config.vocab, " --seq ",
                     config.seq, " --mbs ", config.mbs, ": tensors of up to ", largest, " bytes in up to ", events,
                     " events; expected at most ", kMaxSum, " bytes over the whole trace"));
  }
  return absl::OkStatus();
}

}  // namespace expanse::bench

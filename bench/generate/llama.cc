#include "bench/generate/llama.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/generate/llama_chunk.h"
#include "bench/generate/llama_shapes.h"
#include "bench/generate/llama_weights.h"
#include "bench/generate/pipeline_schedule.h"
#include "bench/generate/rng.h"
#include "bench/generate/trace_builder.h"

namespace expanse::bench {
namespace {

constexpr int32_t kPipelineStream = 1;

// The training loop of one rank. Not thread-safe; used once.
class LlamaRank {
 public:
  LlamaRank(const LlamaConfig& config, TraceBuilder& trace)
      : config_(config),
        trace_(trace),
        rng_(config.seed),
        dimensions_(config),
        weights_(config, trace),
        chunk_(config, trace, weights_),
        slots_(InterleavedSchedule(config.pp, config.vpp, config.acc, config.rank)) {}

  void Train() {
    trace_.Mark("init_end");
    if (config_.master == MasterWeights::kInit) weights_.CreateMasterWeights();
    for (int64_t step = 0; step < config_.steps; ++step) {
      trace_.Mark(absl::StrCat("step", step));
      RunPasses();
      trace_.Mark(absl::StrCat("opt", step));
      weights_.OptimizerStep();
    }
    trace_.Mark("end");
  }

 private:
  // What is under way within one step.
  struct Step {
    std::vector<ActivationSizes> sizes;                   // by micro batch
    std::vector<std::optional<LlamaChunk::Saved>> saved;  // by chunk and micro batch
    std::vector<std::optional<BlockId>> received;         // by slot; none where nothing is received
    size_t posted = 0;                                    // slots whose receive was posted
  };

  [[nodiscard]] uint64_t VariedLength() {
    const auto longest = static_cast<uint64_t>(config_.seq);
    const auto multiple = static_cast<uint64_t>(config_.vary_multiple);
    const auto shortest = static_cast<uint64_t>(static_cast<double>(longest) * config_.vary_min);
    const uint64_t length = rng_.Between(std::max<uint64_t>(1, shortest), longest);
    return std::max(multiple, length / multiple * multiple);
  }

  [[nodiscard]] std::vector<ActivationSizes> SizesOfMicroBatches() {
    const auto fixed = static_cast<uint64_t>(config_.seq);
    const uint64_t of_step = config_.vary_seq == VarySeq::kStep ? VariedLength() : fixed;
    std::vector<ActivationSizes> sizes;
    for (int64_t i = 0; i < config_.acc; ++i) {
      sizes.emplace_back(dimensions_, config_.vary_seq == VarySeq::kMicro ? VariedLength() : of_step);
    }
    return sizes;
  }

  // Posts the receive of slot `index`, and of those before it: the input of a forward pass, or the output gradient of a
  // backward pass, [s/t, b, h] bf16. The model's first chunk has no stage before it and its last none behind it.
  void PostReceives(Step& step, size_t index) {
    for (; step.posted <= index && step.posted < slots_.size(); ++step.posted) {
      const PipelineSlot& slot = slots_[step.posted];
      const ChunkWeights& chunk = weights_.chunk(static_cast<size_t>(slot.chunk));
      if (slot.pass == Pass::kForward ? chunk.embedding.has_value() : chunk.head.has_value()) continue;
      if (config_.vary_seq != VarySeq::kNone) {
        trace_.Free(trace_.Allocate(Bytes(3 * kInt64), kPipelineStream));  // the shape is sent ahead
      }
      const ActivationSizes& sizes = step.sizes[static_cast<size_t>(slot.micro_batch)];
      step.received[step.posted] = trace_.Allocate(sizes.hidden_shard, kPipelineStream);
    }
  }

  void RunPasses() {
    Step step;
    step.sizes = SizesOfMicroBatches();
    step.saved.resize(static_cast<size_t>(config_.vpp * config_.acc));
    step.received.resize(slots_.size());
    // A slot's output is being sent while the next slot runs, and is released after that one.
    std::optional<BlockId> sending;
    for (size_t i = 0; i < slots_.size(); ++i) {
      PostReceives(step, config_.overlap_p2p ? i + 1 : i);
      const std::optional<BlockId> output = RunSlot(step, i);
      if (sending.has_value()) trace_.Free(*sending);
      sending = output;
    }
    if (sending.has_value()) trace_.Free(*sending);
  }

  std::optional<BlockId> RunSlot(Step& step, size_t index) {
    const PipelineSlot& slot = slots_[index];
    const ChunkWeights& chunk = weights_.chunk(static_cast<size_t>(slot.chunk));
    const ActivationSizes& sizes = step.sizes[static_cast<size_t>(slot.micro_batch)];
    std::optional<LlamaChunk::Saved>& saved =
        step.saved[static_cast<size_t>(slot.chunk * config_.acc + slot.micro_batch)];
    if (slot.pass == Pass::kForward) {
      LlamaChunk::Output output = chunk_.Forward(chunk, step.received[index], sizes);
      saved = std::move(output.saved);
      return output.out;
    }
    const std::optional<BlockId> gradient = chunk_.Backward(chunk, std::move(*saved), step.received[index], sizes);
    saved.reset();
    return gradient;
  }

  const LlamaConfig& config_;
  TraceBuilder& trace_;
  Rng rng_;
  const ModelDimensions dimensions_;
  LlamaWeights weights_;
  LlamaChunk chunk_;
  const std::vector<PipelineSlot> slots_;
};

}  // namespace

absl::StatusOr<Trace> GenerateLlama(const LlamaConfig& config) {
  if (absl::Status status = Validate(config); !status.ok()) return status;
  TraceBuilder trace(absl::StrCat("llama rank ", config.rank, " of ", config.pp));
  LlamaRank(config, trace).Train();
  return std::move(trace).Finish();
}

}  // namespace expanse::bench

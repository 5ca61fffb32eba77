// The interleaved one-forward-one-backward schedule of pipeline parallel training.
//
// Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM" (2021),
// section 2.2.

#ifndef EXPANSE_BENCH_GENERATE_PIPELINE_SCHEDULE_H_
#define EXPANSE_BENCH_GENERATE_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <vector>

namespace expanse::bench {

enum class Pass : uint8_t { kForward, kBackward };

// One pass of one micro batch through one of the stage's model chunks.
struct PipelineSlot {
  Pass pass;
  int64_t chunk;        // 0 to vpp - 1
  int64_t micro_batch;  // 0 to micro_batches - 1
  friend bool operator==(const PipelineSlot& a, const PipelineSlot& b) {
    return a.pass == b.pass && a.chunk == b.chunk && a.micro_batch == b.micro_batch;
  }
};

// What stage `rank` of `pp` does in one step, in order: forward passes alone to fill the pipeline, then forward and
// backward passes by turns, then the remaining backward passes. Every (chunk, micro batch) has one of each, the forward
// first. With vpp above 1, `micro_batches` must be a multiple of pp. O(micro_batches * vpp).
[[nodiscard]] std::vector<PipelineSlot> InterleavedSchedule(int64_t pp, int64_t vpp, int64_t micro_batches,
                                                            int64_t rank);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_PIPELINE_SCHEDULE_H_

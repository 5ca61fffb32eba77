#include "bench/generate/pipeline_schedule.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

constexpr Pass F = Pass::kForward;
constexpr Pass B = Pass::kBackward;

TEST(PipelineSchedule, LastStageWithoutChunksAlternatesFromTheStart) {
  EXPECT_THAT(InterleavedSchedule(4, 1, 3, 3),
              testing::ElementsAre(PipelineSlot{F, 0, 0}, PipelineSlot{B, 0, 0}, PipelineSlot{F, 0, 1},
                                   PipelineSlot{B, 0, 1}, PipelineSlot{F, 0, 2}, PipelineSlot{B, 0, 2}));
}

TEST(PipelineSchedule, FirstStageFillsThePipelineFirst) {
  EXPECT_THAT(InterleavedSchedule(3, 1, 3, 0),
              testing::ElementsAre(PipelineSlot{F, 0, 0}, PipelineSlot{F, 0, 1}, PipelineSlot{F, 0, 2},
                                   PipelineSlot{B, 0, 0}, PipelineSlot{B, 0, 1}, PipelineSlot{B, 0, 2}));
}

TEST(PipelineSchedule, ChunksTakeTurnsInRunsOfThePipelinesDepth) {
  // 2 stages, 2 chunks, 4 micro batches: the last stage warms up with (2 - 1) * 2 forward passes.
  EXPECT_THAT(InterleavedSchedule(2, 2, 4, 1),
              testing::ElementsAre(PipelineSlot{F, 0, 0}, PipelineSlot{F, 0, 1},                         //
                                   PipelineSlot{F, 1, 0}, PipelineSlot{B, 1, 0}, PipelineSlot{F, 1, 1},  //
                                   PipelineSlot{B, 1, 1}, PipelineSlot{F, 0, 2}, PipelineSlot{B, 0, 0},  //
                                   PipelineSlot{F, 0, 3}, PipelineSlot{B, 0, 1}, PipelineSlot{F, 1, 2},  //
                                   PipelineSlot{B, 1, 2}, PipelineSlot{F, 1, 3}, PipelineSlot{B, 1, 3},  //
                                   PipelineSlot{B, 0, 2}, PipelineSlot{B, 0, 3}));
}

struct Shape {
  int64_t pp, vpp, micro_batches;
};

class EverySchedule : public testing::TestWithParam<Shape> {};

TEST_P(EverySchedule, RunsEachPassOnceForwardFirst) {
  const auto [pp, vpp, micro_batches] = GetParam();
  for (int64_t rank = 0; rank < pp; ++rank) {
    std::map<std::pair<int64_t, int64_t>, int> passes;  // by chunk and micro batch: 1 after the forward, 2 after both
    for (const PipelineSlot& slot : InterleavedSchedule(pp, vpp, micro_batches, rank)) {
      ASSERT_GE(slot.chunk, 0);
      ASSERT_LT(slot.chunk, vpp);
      ASSERT_GE(slot.micro_batch, 0);
      ASSERT_LT(slot.micro_batch, micro_batches);
      int& seen = passes[{slot.chunk, slot.micro_batch}];
      ASSERT_EQ(seen, slot.pass == F ? 0 : 1) << "rank " << rank;
      ++seen;
    }
    ASSERT_EQ(passes.size(), static_cast<size_t>(vpp * micro_batches)) << "rank " << rank;
    for (const auto& [key, seen] : passes) ASSERT_EQ(seen, 2) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EverySchedule,
                         testing::Values(Shape{1, 1, 1}, Shape{1, 3, 2}, Shape{4, 1, 2}, Shape{4, 1, 9}, Shape{4, 2, 4},
                                         Shape{4, 3, 8}, Shape{8, 5, 32}),
                         [](const testing::TestParamInfo<Shape>& info) {
                           return "pp" + std::to_string(info.param.pp) + "_vpp" + std::to_string(info.param.vpp) +
                                  "_acc" + std::to_string(info.param.micro_batches);
                         });

TEST(PipelineSchedule, EarlierStagesHoldMoreMicroBatches) {
  // The most passes that wait for their backward pass, stage by stage: two more for each stage further from the end.
  for (int64_t rank = 0; rank < 8; ++rank) {
    int64_t waiting = 0;
    int64_t most = 0;
    for (const PipelineSlot& slot : InterleavedSchedule(8, 5, 32, rank)) {
      waiting += slot.pass == F ? 1 : -1;
      most = std::max(most, waiting);
    }
    EXPECT_EQ(most, (8 - rank - 1) * 2 + 4 * 8 + 1) << "rank " << rank;
  }
}

}  // namespace
}  // namespace expanse::bench

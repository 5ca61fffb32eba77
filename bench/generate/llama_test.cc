#include "bench/generate/llama.h"

#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "bench/generate/llama_shapes.h"
#include "bench/trace/base_format.h"
#include "bench/trace/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

// 64-bit FNV-1a: the order of every byte counts.
uint64_t Checksum(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

LlamaConfig TinyConfig() {
  LlamaConfig config;
  config.tp = 1;
  config.pp = 1;
  config.vpp = 1;
  config.acc = 2;
  config.mbs = 3;
  config.seq = 130;
  config.steps = 3;
  config.layers = 2;
  config.hidden = 256;
  config.ffn = 688;
  config.heads = 8;
  config.kv_heads = 8;
  config.vocab = 1000;
  config.release_grads = true;
  config.cublas_ws = MiB(4);
  config.cublaslt_ws = KiB(64);
  return config;
}

// What gen_llama.py writes for the same options: its counts, its figures and the checksum of its file.
struct KnownTrace {
  const char* name;
  LlamaConfig config;
  uint64_t allocations, frees, marks;
  Bytes peak_live, live_at_end;
  uint64_t checksum;
};
void PrintTo(const KnownTrace& known, std::ostream* os) { *os << known.name; }

std::vector<KnownTrace> KnownTraces() {
  LlamaConfig first_stage;
  first_stage.steps = 2;

  LlamaConfig last_stage;
  last_stage.rank = 7;
  last_stage.steps = 2;
  last_stage.release_grads = true;

  LlamaConfig recomputing;
  recomputing.layers = 8;
  recomputing.pp = 2;
  recomputing.vpp = 2;
  recomputing.rank = 1;
  recomputing.acc = 4;
  recomputing.seq = 1024;
  recomputing.mbs = 2;
  recomputing.recompute = Recompute::kFull;
  recomputing.master = MasterWeights::kInit;
  recomputing.init_fp32 = true;
  recomputing.grad_dtype = GradDtype::kBf16;
  recomputing.steps = 3;

  LlamaConfig plain_attention;
  plain_attention.layers = 6;
  plain_attention.pp = 3;
  plain_attention.vpp = 1;
  plain_attention.rank = 1;
  plain_attention.acc = 5;
  plain_attention.seq = 2048;
  plain_attention.attn = Attention::kNaive;
  plain_attention.recompute = Recompute::kSelective;
  plain_attention.fused_wgrad = false;
  plain_attention.overlap_p2p = false;
  plain_attention.shard_dp = 8;
  plain_attention.steps = 3;

  return {{"FirstStage", first_stage, 33539, 33090, 6, Bytes(66380679112), Bytes(39762854376), 0x9e24f783211cc7dd},
          {"LastStage", last_stage, 34570, 34176, 6, Bytes(58640606740), Bytes(30943789552), 0xc59e3d4018b849f9},
          {"Recomputing", recomputing, 4100, 3908, 8, Bytes(15049429216), Bytes(14778761424), 0xcfb11a2cfe2f66d1},
          {"PlainAttention", plain_attention, 2028, 1938, 8, Bytes(4069783648), Bytes(3247685728), 0xe7e85405be8780a1},
          {"WholeTinyModel", TinyConfig(), 933, 837, 8, Bytes(52001194), Bytes(33647224), 0xa7a73ed3dfddd245}};
}

class KnownLlamaTrace : public testing::TestWithParam<KnownTrace> {};

TEST_P(KnownLlamaTrace, IsReproducedToTheByte) {
  const absl::StatusOr<Trace> trace = GenerateLlama(GetParam().config);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_TRUE(Validate(*trace).ok()) << Validate(*trace);
  const TraceSummary summary = Summarize(*trace);
  EXPECT_EQ(summary.allocations, GetParam().allocations);
  EXPECT_EQ(summary.frees, GetParam().frees);
  EXPECT_EQ(summary.marks, GetParam().marks);
  EXPECT_EQ(summary.peak_live, GetParam().peak_live);
  EXPECT_EQ(summary.live_at_end, GetParam().live_at_end);
  const absl::StatusOr<std::string> text = FormatBaseFormat(*trace);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(Checksum(*text), GetParam().checksum);
}

INSTANTIATE_TEST_SUITE_P(Configurations, KnownLlamaTrace, testing::ValuesIn(KnownTraces()),
                         [](const testing::TestParamInfo<KnownTrace>& info) { return std::string(info.param.name); });

TEST(Llama, MarksStepsAndOptimizer) {
  LlamaConfig config = TinyConfig();
  config.steps = 2;
  const absl::StatusOr<Trace> trace = GenerateLlama(config);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->labels, testing::ElementsAre("init_end", "step0", "opt0", "step1", "opt1", "end"));
}

TEST(Llama, StepsAfterTheFirstAreAlike) {
  LlamaConfig config = TinyConfig();
  config.steps = 4;
  const absl::StatusOr<Trace> trace = GenerateLlama(config);
  ASSERT_TRUE(trace.ok()) << trace.status();
  // Sizes in order of allocation, by mark.
  std::vector<std::vector<uint64_t>> sizes;
  for (const TraceEvent& event : trace->events) {
    if (event.op == TraceOp::kMark) sizes.emplace_back();
    if (event.op == TraceOp::kAllocate && !sizes.empty()) sizes.back().push_back(event.value);
  }
  // init_end, step0, opt0, step1, opt1, step2, opt2, step3, opt3, end
  ASSERT_EQ(sizes.size(), 10u);
  EXPECT_EQ(sizes[3], sizes[5]);
  EXPECT_EQ(sizes[4], sizes[6]);
  EXPECT_EQ(sizes[5], sizes[7]);
  EXPECT_NE(sizes[1], sizes[3]);  // the first brings the workspaces
  EXPECT_NE(sizes[2], sizes[4]);  // and its optimizer step the master weights
}

TEST(Llama, RefusesBadOptions) {
  LlamaConfig config;
  config.rank = 9;
  EXPECT_EQ(GenerateLlama(config).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(LlamaShapes, KeyHeadsFewerThanRanksAreCopied) {
  LlamaConfig config;
  config.tp = 16;
  config.seq = 4096;
  const ModelDimensions m(config);
  EXPECT_EQ(m.g_local, 1u);
  EXPECT_EQ(m.a_local, 4u);
  EXPECT_EQ(WeightElements(m).qkv, uint64_t{8192} * (4 + 2) * 128);
  EXPECT_EQ(ActivationSizes(m, 4096).key, Bytes(uint64_t{2} * 4096 * 128));
}

// Lengths of the sequences, one for each embedding that a one-chunk model computes.
std::vector<uint64_t> EmbeddedLengths(const Trace& trace) {
  std::vector<uint64_t> lengths;
  for (size_t i = 0; i + 1 < trace.events.size(); ++i) {
    const TraceEvent& ids = trace.events[i];
    const TraceEvent& mask = trace.events[i + 1];
    // Token ids of 8 bytes are followed at once by their mask of 1 byte each, as nothing else is.
    if (ids.op == TraceOp::kAllocate && mask.op == TraceOp::kAllocate && ids.value == 8 * mask.value &&
        trace.events[i + 2].op == TraceOp::kAllocate && trace.events[i + 3].op == TraceOp::kFree &&
        trace.events[i + 3].block == mask.block) {
      lengths.push_back(mask.value);
    }
  }
  return lengths;
}

LlamaConfig VaryingConfig(VarySeq vary, int64_t steps, int64_t acc) {
  LlamaConfig config = TinyConfig();
  config.mbs = 1;
  config.seq = 4096;
  config.layers = 1;
  config.steps = steps;
  config.acc = acc;
  config.vary_seq = vary;
  return config;
}

TEST(LlamaVaryingLengths, AreUniformMultiplesFromTheShortestToTheLongest) {
  const absl::StatusOr<Trace> trace = GenerateLlama(VaryingConfig(VarySeq::kMicro, 10, 1000));
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::vector<uint64_t> lengths = EmbeddedLengths(*trace);
  ASSERT_EQ(lengths.size(), 10'000u);
  double sum = 0;
  std::set<uint64_t> distinct;
  for (const uint64_t length : lengths) {
    ASSERT_EQ(length % 64, 0u);
    sum += static_cast<double>(length);
    distinct.insert(length);
  }
  // Drawn evenly from 2048 to 4096 and rounded down to 64: every multiple in the range, the longest about once in 2049.
  EXPECT_EQ(*distinct.begin(), 2048u);
  EXPECT_EQ(*distinct.rbegin(), 4096u);
  EXPECT_EQ(distinct.size(), 33u);
  EXPECT_NEAR(sum / 10'000, 3072 - 31.5, 25);  // four standard errors
}

TEST(LlamaVaryingLengths, AreOneForAWholeStepWithStep) {
  const absl::StatusOr<Trace> trace = GenerateLlama(VaryingConfig(VarySeq::kStep, 50, 4));
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::vector<uint64_t> lengths = EmbeddedLengths(*trace);
  ASSERT_EQ(lengths.size(), 200u);
  std::set<uint64_t> distinct(lengths.begin(), lengths.end());
  EXPECT_GT(distinct.size(), 10u);
  for (size_t i = 0; i < lengths.size(); ++i) EXPECT_EQ(lengths[i], lengths[i / 4 * 4]) << "micro batch " << i;
}

TEST(LlamaVaryingLengths, FollowTheSeed) {
  LlamaConfig config = VaryingConfig(VarySeq::kMicro, 1, 50);
  const absl::StatusOr<Trace> once = GenerateLlama(config);
  const absl::StatusOr<Trace> again = GenerateLlama(config);
  config.seed = 1;
  const absl::StatusOr<Trace> other = GenerateLlama(config);
  ASSERT_TRUE(once.ok() && again.ok() && other.ok());
  EXPECT_EQ(EmbeddedLengths(*once), EmbeddedLengths(*again));
  EXPECT_NE(EmbeddedLengths(*once), EmbeddedLengths(*other));
}

TEST(LlamaVaryingLengths, NeverFallBelowTheirMultiple) {
  LlamaConfig config = VaryingConfig(VarySeq::kMicro, 1, 500);
  config.vary_min = 0;
  config.vary_multiple = 1024;
  const absl::StatusOr<Trace> trace = GenerateLlama(config);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::vector<uint64_t> lengths = EmbeddedLengths(*trace);
  // Half of what is drawn from 1 to 4096 lies below 2048, and is rounded to 1024 from either side.
  int shortest = 0;
  for (const uint64_t length : lengths) {
    ASSERT_TRUE(length == 1024 || length == 2048 || length == 3072 || length == 4096) << length;
    shortest += length == 1024 ? 1 : 0;
  }
  EXPECT_NEAR(shortest, 250, 60);  // more than five standard deviations
}

TEST(LlamaVaryingLengths, SendTheShapeBeforeEachReceive) {
  LlamaConfig config = VaryingConfig(VarySeq::kStep, 1, 4);
  config.pp = 2;
  config.layers = 2;
  config.rank = 1;
  const absl::StatusOr<Trace> trace = GenerateLlama(config);
  ASSERT_TRUE(trace.ok()) << trace.status();
  int shapes = 0;
  int received = 0;
  for (const TraceEvent& event : trace->events) {
    if (event.op != TraceOp::kAllocate || event.stream != 1) continue;
    ++(event.value == 24 ? shapes : received);
  }
  EXPECT_EQ(shapes, 4);
  EXPECT_EQ(received, 4);
}

}  // namespace
}  // namespace expanse::bench

#include "bench/generate/llama_config.h"

#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using testing::HasSubstr;

TEST(LlamaConfig, DefaultsAreValid) { EXPECT_TRUE(Validate(LlamaConfig()).ok()); }

struct BadCase {
  const char* name;
  std::function<void(LlamaConfig&)> change;
  std::vector<std::string> message;  // each must be in it
};
void PrintTo(const BadCase& bad, std::ostream* os) { *os << bad.name; }

class BadLlamaConfig : public testing::TestWithParam<BadCase> {};

TEST_P(BadLlamaConfig, NamesOptionValueAndExpectation) {
  LlamaConfig config;
  GetParam().change(config);
  const absl::Status status = Validate(config);
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const std::string& part : GetParam().message) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadLlamaConfig,
    testing::Values(
        BadCase{"ZeroTp", [](LlamaConfig& c) { c.tp = 0; }, {"--tp 0: ", "expected 1 to "}},
        BadCase{"ZeroPp", [](LlamaConfig& c) { c.pp = 0; }, {"--pp 0: "}},
        BadCase{"ZeroVpp", [](LlamaConfig& c) { c.vpp = 0; }, {"--vpp 0: "}},
        BadCase{"NegativeMbs", [](LlamaConfig& c) { c.mbs = -3; }, {"--mbs -3: "}},
        BadCase{"ZeroAcc", [](LlamaConfig& c) { c.acc = 0; }, {"--acc 0: "}},
        BadCase{"ZeroSeq", [](LlamaConfig& c) { c.seq = 0; }, {"--seq 0: "}},
        BadCase{"ZeroSteps", [](LlamaConfig& c) { c.steps = 0; }, {"--steps 0: "}},
        BadCase{"ZeroLayers", [](LlamaConfig& c) { c.layers = 0; }, {"--layers 0: "}},
        BadCase{"ZeroHidden", [](LlamaConfig& c) { c.hidden = 0; }, {"--hidden 0: "}},
        BadCase{"ZeroFfn", [](LlamaConfig& c) { c.ffn = 0; }, {"--ffn 0: "}},
        BadCase{"ZeroHeads", [](LlamaConfig& c) { c.heads = 0; }, {"--heads 0: "}},
        BadCase{"ZeroKvHeads", [](LlamaConfig& c) { c.kv_heads = 0; }, {"--kv-heads 0: "}},
        BadCase{"ZeroVocab", [](LlamaConfig& c) { c.vocab = 0; }, {"--vocab 0: "}},
        BadCase{"ZeroShardDp", [](LlamaConfig& c) { c.shard_dp = 0; }, {"--shard-dp 0: "}},
        BadCase{"ZeroVaryMultiple", [](LlamaConfig& c) { c.vary_multiple = 0; }, {"--vary-multiple 0: "}},
        BadCase{"ZeroWorkspace", [](LlamaConfig& c) { c.cublas_ws = Bytes(); }, {"--cublas-ws 0: ", "at least 1 byte"}},
        BadCase{"ZeroLtWorkspace", [](LlamaConfig& c) { c.cublaslt_ws = Bytes(); }, {"--cublaslt-ws 0: "}},
        BadCase{"TooLargeDimension", [](LlamaConfig& c) { c.hidden = int64_t{1} << 31; }, {"--hidden 2147483648: "}},
        BadCase{"RankTooHigh", [](LlamaConfig& c) { c.rank = 8; }, {"--rank 8: ", "0 to pp - 1 = 7"}},
        BadCase{"RankNegative", [](LlamaConfig& c) { c.rank = -1; }, {"--rank -1: "}},
        BadCase{"VaryMinAboveOne", [](LlamaConfig& c) { c.vary_min = 1.5; }, {"--vary-min 1.5: "}},
        BadCase{"VaryMinNotANumber", [](LlamaConfig& c) { c.vary_min = std::nan(""); }, {"--vary-min nan: "}},
        BadCase{"LayersDoNotDivide", [](LlamaConfig& c) { c.layers = 81; }, {"--layers 81: ", "pp * vpp = 40"}},
        BadCase{"SeqDoesNotDivide", [](LlamaConfig& c) { c.seq = 4095; }, {"--seq 4095: ", "tp = 4"}},
        BadCase{"AccDoesNotDivide", [](LlamaConfig& c) { c.acc = 30; }, {"--acc 30: ", "pp = 8"}},
        BadCase{"VaryMultipleDoesNotDivide",
                [](LlamaConfig& c) {
                  c.vary_seq = VarySeq::kStep;
                  c.vary_multiple = 66;
                },
                {"--vary-multiple 66: ", "tp = 4"}},
        BadCase{"FewerHeadsThanRanks", [](LlamaConfig& c) { c.heads = 3; }, {"--heads 3: ", "at least tp = 4"}},
        BadCase{"FewerFfnThanRanks", [](LlamaConfig& c) { c.ffn = 3; }, {"--ffn 3: "}},
        BadCase{"FewerWordsThanRanks", [](LlamaConfig& c) { c.vocab = 3; }, {"--vocab 3: "}},
        BadCase{"EmptyHeads", [](LlamaConfig& c) { c.hidden = 32; }, {"--hidden 32: ", "at least heads = 64"}},
        BadCase{"TooManyEvents", [](LlamaConfig& c) { c.steps = 1'000'000; }, {"--steps 1000000: ", "events"}},
        BadCase{"TensorsTooLarge",
                [](LlamaConfig& c) {
                  c.hidden = 2'000'000'000;
                  c.ffn = 2'000'000'000;
                },
                {"--hidden 2000000000", "--ffn 2000000000", "expected at most"}},
        BadCase{"ScoresTooLarge",
                [](LlamaConfig& c) {
                  c.attn = Attention::kNaive;
                  c.seq = 1 << 28;
                },
                {"--seq 268435456", "expected at most"}},
        BadCase{"WorkspaceTooLarge", [](LlamaConfig& c) { c.cublas_ws = Bytes(~uint64_t{0}); }, {"expected at most"}}),
    [](const testing::TestParamInfo<BadCase>& info) { return std::string(info.param.name); });

TEST(LlamaConfig, UnusedRestrictionsDoNotApply) {
  LlamaConfig no_chunks;
  no_chunks.vpp = 1;
  no_chunks.acc = 3;  // not a multiple of pp
  EXPECT_TRUE(Validate(no_chunks).ok());
  LlamaConfig fixed_lengths;
  fixed_lengths.vary_multiple = 66;
  EXPECT_TRUE(Validate(fixed_lengths).ok());
}

}  // namespace
}  // namespace expanse::bench

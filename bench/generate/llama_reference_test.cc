// Runs gen_llama.py, where it and Python are at hand, and compares its files with ours, byte by byte.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include "bench/generate/llama.h"
#include "bench/trace/base_format.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  std::string options;  // as gen_llama.py takes them
  LlamaConfig config;   // the same
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name << " (" << c.options << ")"; }

// A model of one layer for each chunk of each stage, small enough to generate in no time.
LlamaConfig Small() {
  LlamaConfig config;
  config.tp = 2;
  config.pp = 2;
  config.vpp = 3;
  config.rank = 0;
  config.mbs = 2;
  config.acc = 6;
  config.seq = 512;
  config.steps = 3;
  config.layers = 6;
  config.hidden = 1024;
  config.ffn = 2816;
  config.heads = 16;
  config.kv_heads = 4;
  config.vocab = 5000;
  return config;
}
constexpr char kSmall[] =
    "--tp 2 --pp 2 --vpp 3 --mbs 2 --acc 6 --seq 512 --steps 3 --layers 6 --hidden 1024 --ffn 2816 --heads 16 "
    "--kv-heads 4 "
    "--vocab 5000 ";

// Every option appears with a value that is not its default, but for --vary-min, --vary-multiple and --seed: they play
// no part in fixed lengths, and with varying ones the random numbers differ.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const char* name, const std::string& options, auto change) {
    Case& added = cases.emplace_back(Case{name, kSmall + options, Small()});
    change(added.config);
  };
  cases.push_back({"Defaults", "", LlamaConfig()});
  add("SmallFirstStage", "", [](LlamaConfig&) {});
  add("SmallLastStage", "--rank 1", [](LlamaConfig& c) { c.rank = 1; });
  add("ReleaseGrads", "--rank 1 --release-grads on", [](LlamaConfig& c) {
    c.rank = 1;
    c.release_grads = true;
  });
  add("SelectiveRecompute", "--recompute selective", [](LlamaConfig& c) { c.recompute = Recompute::kSelective; });
  add("FullRecompute", "--recompute full --rank 1", [](LlamaConfig& c) {
    c.recompute = Recompute::kFull;
    c.rank = 1;
  });
  add("PlainAttention", "--attn naive", [](LlamaConfig& c) { c.attn = Attention::kNaive; });
  add("PlainAttentionRecomputed", "--attn naive --recompute selective", [](LlamaConfig& c) {
    c.attn = Attention::kNaive;
    c.recompute = Recompute::kSelective;
  });
  add("PlainAttentionRecomputedInFull", "--attn naive --recompute full", [](LlamaConfig& c) {
    c.attn = Attention::kNaive;
    c.recompute = Recompute::kFull;
  });
  add("Bf16Gradients", "--grad-dtype bf16 --fused-wgrad off", [](LlamaConfig& c) {
    c.grad_dtype = GradDtype::kBf16;
    c.fused_wgrad = false;
  });
  add("ShardedEarlyMasters", "--shard-dp 7 --master init --init-fp32", [](LlamaConfig& c) {
    c.shard_dp = 7;
    c.master = MasterWeights::kInit;
    c.init_fp32 = true;
  });
  add("NoOverlap", "--overlap-p2p off --cublas-ws 4000001 --cublaslt-ws 77", [](LlamaConfig& c) {
    c.overlap_p2p = false;
    c.cublas_ws = Bytes(4'000'001);
    c.cublaslt_ws = Bytes(77);
  });
  add("OneRoundOfMicroBatches", "--acc 2", [](LlamaConfig& c) { c.acc = 2; });
  add("PlainPipeline", "--pp 3 --vpp 1 --rank 1 --acc 5", [](LlamaConfig& c) {
    c.pp = 3;
    c.vpp = 1;
    c.rank = 1;
    c.acc = 5;
  });
  add("OneStage", "--pp 1 --vpp 1 --tp 1 --seq 300", [](LlamaConfig& c) {
    c.pp = 1;
    c.vpp = 1;
    c.tp = 1;
    c.seq = 300;
  });
  add("OneStageOfChunks", "--pp 1 --vpp 2", [](LlamaConfig& c) {
    c.pp = 1;
    c.vpp = 2;
  });
  add("UnevenShares", "--tp 4 --heads 10 --kv-heads 1 --hidden 1030 --ffn 2815 --vocab 5003", [](LlamaConfig& c) {
    c.tp = 4;
    c.heads = 10;
    c.kv_heads = 1;
    c.hidden = 1030;
    c.ffn = 2815;
    c.vocab = 5003;
  });
  add("EqualHeads", "--kv-heads 16", [](LlamaConfig& c) { c.kv_heads = 16; });
  return cases;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool PythonRuns() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the test has one thread
  static const bool runs = std::system("python3 -c '' >/dev/null 2>&1") == 0;
  return runs;
}

class LlamaReference : public testing::TestWithParam<Case> {};

TEST_P(LlamaReference, WritesTheSameBytes) {
  const fs::path script = fs::path(EXPANSE_SHARED_DIR) / "gen_llama.py";
  if (!fs::exists(script)) GTEST_SKIP() << script << " is not there";
  if (!PythonRuns()) GTEST_SKIP() << "python3 does not run";

  std::string directory = (fs::temp_directory_path() / "llama_reference_XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const fs::path expected = fs::path(directory) / "expected.csv";
  const std::string command =
      "python3 -B '" + script.string() + "' " + GetParam().options + " -o '" + expected.string() + "' >/dev/null";
  const int exit_status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  const std::string reference = ReadFile(expected);
  fs::remove_all(directory);
  ASSERT_EQ(exit_status, 0) << command;
  ASSERT_GT(reference.size(), 10'000u);

  const absl::StatusOr<Trace> trace = GenerateLlama(GetParam().config);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const absl::StatusOr<std::string> text = FormatBaseFormat(*trace);
  ASSERT_TRUE(text.ok()) << text.status();
  // Not EXPECT_EQ, which would print both files.
  size_t same = 0;
  while (same < text->size() && same < reference.size() && (*text)[same] == reference[same]) ++same;
  EXPECT_TRUE(*text == reference) << "first difference at byte " << same << ": expected \""
                                  << reference.substr(same, 40) << "\", got \"" << text->substr(same, 40) << "\"";
}

INSTANTIATE_TEST_SUITE_P(OptionSets, LlamaReference, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace expanse::bench

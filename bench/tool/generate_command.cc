// expanse generate KIND: traces from models' shapes, or at random.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/generate/llama.h"
#include "bench/generate/random.h"
#include "bench/tool/command.h"
#include "bench/tool/flags.h"
#include "bench/tool/output.h"
#include "bench/tool/suggest.h"
#include "bench/tool/trace_flags.h"

namespace expanse::tool {
namespace {

using bench::Attention;
using bench::GradDtype;
using bench::MasterWeights;
using bench::Recompute;
using bench::VarySeq;

void DeclareOnOff(CLI::App& app, const std::string& option, bool* target, const std::string& help) {
  AddChoice<bool>(app, option, target, {{"on", true}, {"off", false}}, help);
}

void DeclareLlama(CLI::App& app, bench::LlamaConfig* config) {
  AddCount(app, "--tp", &config->tp, "Tensor parallel ranks [4]");
  AddCount(app, "--pp", &config->pp, "Pipeline stages [8]");
  AddCount(app, "--vpp", &config->vpp, "Model chunks per stage [5]");
  AddCount(app, "--rank", &config->rank, "This pipeline stage [0]");
  AddCount(app, "--mbs", &config->mbs, "Sequences in a micro batch [1]");
  AddCount(app, "--acc", &config->acc, "Micro batches accumulated in a step [32]");
  AddCount(app, "--seq", &config->seq, "Tokens in a sequence [4096]");
  AddCount(app, "--steps", &config->steps, "Training steps [4]");
  AddCount(app, "--layers", &config->layers, "Layers of the model [80]");
  AddCount(app, "--hidden", &config->hidden, "Width of the model [8192]");
  AddCount(app, "--ffn", &config->ffn, "Width of the feed-forward layers [28672]");
  AddCount(app, "--heads", &config->heads, "Attention heads [64]");
  AddCount(app, "--kv-heads", &config->kv_heads, "Key and value heads [8]");
  AddCount(app, "--vocab", &config->vocab, "Words of the vocabulary [32000]");
  DeclareOnOff(app, "--release-grads", &config->release_grads, "Free gradients after each step [off]");
  AddChoice<Recompute>(app, "--recompute", &config->recompute,
                       {{"none", Recompute::kNone}, {"selective", Recompute::kSelective}, {"full", Recompute::kFull}},
                       "What the backward pass computes again [none]");
  AddChoice<Attention>(app, "--attn", &config->attn, {{"flash", Attention::kFlash}, {"naive", Attention::kNaive}},
                       "Attention kernel [flash]");
  AddChoice<GradDtype>(app, "--grad-dtype", &config->grad_dtype,
                       {{"fp32", GradDtype::kFp32}, {"bf16", GradDtype::kBf16}}, "Type of the gradients [fp32]");
  DeclareOnOff(app, "--fused-wgrad", &config->fused_wgrad, "Accumulate weight gradients in place [on]");
  AddCount(app, "--shard-dp", &config->shard_dp, "Ranks that share master weights and moments [1]");
  AddChoice<MasterWeights>(app, "--master", &config->master,
                           {{"lazy", MasterWeights::kLazy}, {"init", MasterWeights::kInit}},
                           "When master weights appear [lazy]");
  app.add_flag("--init-fp32", config->init_fp32, "Create each parameter in fp32, then cast it");
  AddChoice<VarySeq>(app, "--vary-seq", &config->vary_seq,
                     {{"none", VarySeq::kNone}, {"step", VarySeq::kStep}, {"micro", VarySeq::kMicro}},
                     "How often the sequence length changes [none]");
  auto fraction = [](const std::string& text) -> absl::StatusOr<double> {
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no number"));
    return value;
  };
  AddParsed(app, "--vary-min", &config->vary_min, fraction, "SHARE", "Shortest sequence, as a share of --seq [0.5]");
  AddCount(app, "--vary-multiple", &config->vary_multiple, "Lengths are multiples of this [64]");
  DeclareOnOff(app, "--overlap-p2p", &config->overlap_p2p, "Post receives one slot ahead [on]");
  AddSize(app, "--cublas-ws", &config->cublas_ws, "Workspace of cuBLAS, per stream [32MiB]");
  AddSize(app, "--cublaslt-ws", &config->cublaslt_ws, "Workspace of cuBLASLt, per stream [1MiB]");
  AddCount(app, "--seed", &config->seed, "Seed of the varying lengths [0]");
}

void DeclareRandom(CLI::App& app, bench::RandomConfig* config) {
  AddCount(app, "--events", &config->events, "Allocations and frees, an even number [80000]");
  AddSize(app, "--live", &config->live, "Live bytes are kept below this [40GiB]");
  AddSize(app, "--min-size", &config->min_size, "Smallest block [512B]");
  AddSize(app, "--max-size", &config->max_size, "Largest block [1GiB]");
  AddCount(app, "--phases", &config->phases, "Phases, each with a mixture of sizes of its own [8]");
  AddCount(app, "--streams", &config->streams, "Streams that blocks are spread over [1]");
  AddCount(app, "--seed", &config->seed, "Seed [0]");
}

class GenerateCommand final : public Command {
 public:
  void Declare(CLI::App& app) override {
    app_ = &app;
    // Options in any place: before the kind as well as after it.
    DeclareOut(app);
    llama_app_ = AddKind("llama", "One rank of Llama-2 style pretraining, from the model's shapes");
    llama_app_->footer(
        "Example, 4 steps of Llama-2 70B, stage 0 of 8:\n"
        "  expanse generate llama --release-grads on -o llama70b.csv.gz\n");
    DeclareLlama(*llama_app_, &llama_);
    random_app_ = AddKind("random", "Blocks of all sizes, freed in random order, in changing mixtures");
    random_app_->footer("Example:\n  expanse generate random --events 10000 --live 4GiB -o random.csv\n");
    DeclareRandom(*random_app_, &random_);
    app.require_subcommand(0, 1);
    app.footer(
        "Examples:\n"
        "  expanse generate llama --release-grads on --vary-seq step -o llama70b.csv.gz\n"
        "  expanse generate random --seed 7 | expanse compare - --capacity 1.1x\n"
        "Each kind has its own --help.\n");
  }

  absl::StatusOr<ExitStatus> Run() override {
    if (!llama_app_->parsed() && !random_app_->parsed()) return NoKind();
    if (absl::Status status = CheckNoExtras(*app_); !status.ok()) return status;
    const CLI::App& kind = llama_app_->parsed() ? *llama_app_ : *random_app_;
    if (absl::Status status = CheckNoExtras(kind); !status.ok()) return status;
    if (absl::Status status = CheckEffects(kind); !status.ok()) return status;
    if (absl::Status status = CheckWritable(out_); !status.ok()) return status;
    absl::StatusOr<bench::Trace> trace =
        llama_app_->parsed() ? bench::GenerateLlama(llama_) : bench::GenerateRandom(random_);
    if (!trace.ok()) return trace.status();
    if (absl::Status status = WriteTraceTo(*trace, out_); !status.ok()) return status;
    return kDone;
  }

 private:
  CLI::App* AddKind(const std::string& name, const std::string& help) {
    CLI::App* kind = app_->add_subcommand(name, help);
    kind->allow_extras();
    DeclareOut(*kind);
    return kind;
  }

  void DeclareOut(CLI::App& app) {
    AddOutput(app, "-o,--out", &out_, "The file to write, .csv or .csv.gz; - is the standard output [-]");
  }

  absl::Status CheckEffects(const CLI::App& kind) const {
    if (!app_->get_option("--out")->empty() && !kind.get_option("--out")->empty()) {
      return absl::InvalidArgumentError("--out: given several times, expected once at most");
    }
    if (!llama_app_->parsed() || llama_.vary_seq != VarySeq::kNone) return absl::OkStatus();
    for (const char* option : {"--vary-min", "--vary-multiple", "--seed"}) {
      WarnWithoutEffect(*llama_app_->get_option(option), "on one sequence length; it is for --vary-seq step or micro");
    }
    return absl::OkStatus();
  }

  absl::Status NoKind() const {
    const std::vector<std::string> kinds = {"llama", "random"};
    const std::vector<std::string> extras = app_->remaining();
    if (extras.empty()) return absl::InvalidArgumentError("no kind is named; expected llama or random");
    for (const char* later : {"fsdp", "moe", "serving", "diffusion"}) {
      if (extras.front() == later) return ComesLater(absl::StrCat("the kind '", later, "'"));
    }
    return absl::InvalidArgumentError(absl::StrCat("unknown kind '", extras.front(), "'; expected llama or random",
                                                   DidYouMean(extras.front(), kinds)));
  }

  CLI::App* app_ = nullptr;
  CLI::App* llama_app_ = nullptr;
  CLI::App* random_app_ = nullptr;
  bench::LlamaConfig llama_;
  bench::RandomConfig random_;
  std::string out_ = "-";
};

}  // namespace

std::unique_ptr<Command> MakeGenerateCommand() { return std::make_unique<GenerateCommand>(); }

}  // namespace expanse::tool

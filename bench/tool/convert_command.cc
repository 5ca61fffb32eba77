// expanse convert IN OUT: from any format that is read to one that is written.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/tool/command.h"
#include "bench/tool/flags.h"
#include "bench/tool/output.h"
#include "bench/tool/trace_flags.h"
#include "bench/trace/reader.h"

namespace expanse::tool {
namespace {

class ConvertCommand final : public Command {
 public:
  void Declare(CLI::App& app) override {
    trace_.Declare(app, "IN");
    app.add_option("OUT", out_, "The file to write: .csv, or .csv.gz for gzip; - is the standard output")
        ->type_name("");
    app.footer(
        "Reads PyTorch memory snapshots and traces in the base format, and writes the base format.\n\n"
        "Examples:\n"
        "  expanse convert snapshot.pickle trace.csv.gz\n"
        "  expanse convert trace.csv.gz - | head\n");
  }

  absl::StatusOr<ExitStatus> Run() override {
    if (out_.empty()) return absl::InvalidArgumentError("no output is named; - is the standard output");
    for (const char* other : {".pickle", ".pkl", ".json", ".log"}) {
      if (absl::EndsWithIgnoreCase(out_, other)) return ComesLater(absl::StrCat("writing ", other, " files"));
    }
    if (absl::Status status = CheckWritable(out_); !status.ok()) return status;
    absl::StatusOr<bench::LoadedTrace> loaded = trace_.Load();
    if (!loaded.ok()) return loaded.status();
    if (absl::Status status = WriteTraceTo(loaded->trace, out_); !status.ok()) return status;
    return kDone;
  }

 private:
  TraceFlags trace_;
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> MakeConvertCommand() { return std::make_unique<ConvertCommand>(); }

}  // namespace expanse::tool

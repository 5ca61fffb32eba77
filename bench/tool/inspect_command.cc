// expanse inspect FILE: what a trace holds.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/tool/command.h"
#include "bench/tool/flags.h"
#include "bench/tool/output.h"
#include "bench/tool/trace_flags.h"
#include "bench/trace/inspect.h"

namespace expanse::tool {
namespace {

class InspectCommand final : public Command {
 public:
  void Declare(CLI::App& app) override {
    trace_.Declare(app, "FILE");
    AddOutput(app, "--json", &json_, "Write it as JSON; - is the standard output, without the text");
    app.footer(
        "Examples:\n"
        "  expanse inspect snapshot.pickle\n"
        "  expanse inspect trace.csv.gz --json - | jq .peak_live_bytes\n");
  }

  absl::StatusOr<ExitStatus> Run() override {
    if (absl::Status status = CheckWritable(json_); !status.ok()) return status;
    absl::StatusOr<bench::LoadedTrace> loaded = trace_.Load();
    if (!loaded.ok()) return loaded.status();
    if (json_ != "-") {
      if (absl::Status status = WriteStandardOutput(bench::InspectText(*loaded)); !status.ok()) return status;
    }
    if (!json_.empty()) {
      if (absl::Status status = WriteOutput(json_, bench::InspectJson(*loaded)); !status.ok()) return status;
    }
    return kDone;
  }

 private:
  TraceFlags trace_;
  std::string json_;
};

}  // namespace

std::unique_ptr<Command> MakeInspectCommand() { return std::make_unique<InspectCommand>(); }

}  // namespace expanse::tool

// expanse replay TRACE: one allocator.

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/replay/replay.h"
#include "bench/tool/command.h"
#include "bench/tool/output.h"
#include "bench/tool/progress.h"
#include "bench/tool/replay_flags.h"
#include "bench/tool/report_tables.h"

namespace expanse::tool {
namespace {

class ReplayCommand final : public Command {
 public:
  void Declare(CLI::App& app) override {
    trace_.Declare(app, "TRACE");
    app.add_option("--allocator", allocator_, "Which allocator serves the trace [expanse]")->type_name("A");
    flags_.DeclareDevice(app);
    flags_.DeclareReplay(app);
    flags_.DeclareOutput(app);
    flags_.DeclareRecord(app);
    app.footer(
        "Exit status: 0 done, 1 the trace ran out of memory, 2 usage or input error.\n\n"
        "Examples:\n"
        "  expanse replay snapshot.pickle --capacity 40GiB\n"
        "  expanse replay trace.csv.gz --allocator caching --json - | jq '.results[0].peak_reserved_bytes'\n"
        "  expanse generate llama --steps 2 | expanse replay - --capacity 1.01x --lag 200 --svg memory.svg\n");
  }

  absl::StatusOr<ExitStatus> Run() override {
    if (absl::Status status = CheckAllocator(allocator_); !status.ok()) return status;
    if (absl::Status status = flags_.Check({allocator_}); !status.ok()) return status;
    absl::StatusOr<bench::LoadedTrace> loaded = trace_.Load();
    if (!loaded.ok()) return loaded.status();
    const bench::Trace& trace = loaded->trace;

    bench::ReplayOptions options = flags_.Resolve(trace);
    options.allocator = allocator_;
    options.measure_host_time = true;
    absl::StatusOr<bench::ReplayResult> result;
    {
      ProgressBar bar(allocator_);
      options.progress = [&bar](uint64_t done, uint64_t total) { bar.Update(done, total); };
      result = bench::Replay(trace, options);
    }
    if (!result.ok()) return result.status();

    if (flags_.ShowsTable()) {
      const std::string text =
          absl::StrCat(Headline(trace, flags_.DescribeDevice(*result)), "\n", ReplayTable(*result));
      if (absl::Status status = WriteStandardOutput(text); !status.ok()) return status;
    }
    if (!result->failure_message.empty()) Warn(result->failure_message);
    if (absl::Status status = flags_.WriteRecording(*result); !status.ok()) return status;
    const ExitStatus exit_status = result->out_of_memory || result->hazards.value_or(0) > 0 ? kDidNotRun : kDone;
    TraceReport report{std::move(loaded->trace), {}, std::string()};
    report.title = Title(report.trace, flags_.DescribeDevice(*result));
    report.results.push_back(*std::move(result));
    if (absl::Status status = flags_.WriteReports({&report, 1}); !status.ok()) return status;
    return exit_status;
  }

 private:
  TraceFlags trace_;
  std::string allocator_ = "expanse";
  ReplayFlags flags_;
};

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace expanse::tool

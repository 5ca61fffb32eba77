// expanse fit TRACE: the smallest capacity that runs it.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/replay/replay.h"
#include "bench/replay/table.h"
#include "bench/tool/command.h"
#include "bench/tool/output.h"
#include "bench/tool/progress.h"
#include "bench/tool/replay_flags.h"
#include "bench/tool/report_tables.h"

namespace expanse::tool {
namespace {

class FitCommand final : public Command {
 public:
  void Declare(CLI::App& app) override {
    trace_.Declare(app, "TRACE");
    DeclareAllocators(app, &allocators_);
    flags_.DeclareDevice(app);
    flags_.DeclareOutput(app);
    app.footer(
        "Capacities are tried from the trace's peak live bytes up to --capacity, by default 80 GiB or 16 times the "
        "peak,\n"
        "whichever is more, and resolved to 2 MiB.\n"
        "Exit status: 0 done, 1 an allocator runs the trace on none of them, 2 usage or input error.\n\n"
        "Examples:\n"
        "  expanse fit snapshot.pickle\n"
        "  expanse fit trace.csv.gz --allocators expanse --lag 200 --json -\n");
  }

  absl::StatusOr<ExitStatus> Run() override {
    if (absl::Status status = flags_.Check(allocators_); !status.ok()) return status;
    if (!flags_.on_simulator()) return absl::InvalidArgumentError("--device: fit needs the simulated device");
    absl::StatusOr<bench::LoadedTrace> loaded = trace_.Load();
    if (!loaded.ok()) return loaded.status();
    const bench::Trace& trace = loaded->trace;

    bench::ReplayOptions options = flags_.Resolve(trace);
    if (!flags_.capacity_given()) options.capacity = LargestFitCapacity(trace);
    ExitStatus exit_status = kDone;
    std::vector<bench::ReplayResult> results;
    for (const std::string& allocator : allocators_) {
      options.allocator = allocator;
      ProgressBar bar(absl::StrCat("fit ", allocator));
      options.progress = [&bar](uint64_t done, uint64_t total) { bar.Update(done, total); };
      absl::StatusOr<bench::ReplayResult> result = bench::Fit(trace, options);
      if (result.status().code() == absl::StatusCode::kNotFound) {
        // What happens on the largest is the most that there is to report.
        exit_status = kDidNotRun;
        result = bench::Replay(trace, options);
      }
      if (!result.ok()) return result.status();
      results.push_back(*std::move(result));
    }
    if (flags_.ShowsTable()) {
      const std::string text =
          absl::StrCat(Headline(trace, "simulated devices, modelled costs"), "\n", FitTable(results, options.capacity));
      if (absl::Status status = WriteStandardOutput(text); !status.ok()) return status;
    }
    TraceReport report{std::move(loaded->trace), std::move(results), std::string()};
    report.title = Title(report.trace, "each allocator on the smallest capacity that runs it");
    if (absl::Status status = flags_.WriteReports({&report, 1}); !status.ok()) return status;
    return exit_status;
  }

 private:
  TraceFlags trace_;
  std::vector<std::string> allocators_;
  ReplayFlags flags_;
};

}  // namespace

std::unique_ptr<Command> MakeFitCommand() { return std::make_unique<FitCommand>(); }

}  // namespace expanse::tool

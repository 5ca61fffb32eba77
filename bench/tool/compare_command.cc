// expanse compare TRACE...: several allocators, one table.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/replay/replay.h"
#include "bench/tool/command.h"
#include "bench/tool/flags.h"
#include "bench/tool/output.h"
#include "bench/tool/progress.h"
#include "bench/tool/replay_flags.h"
#include "bench/tool/report_tables.h"

namespace expanse::tool {
namespace {

class CompareCommand final : public Command {
 public:
  void Declare(CLI::App& app) override {
    trace_.DeclareSeveral(app, "TRACE");
    DeclareAllocators(app, &allocators_);
    flags_.DeclareDevice(app);
    flags_.DeclareReplay(app);
    app.add_flag("--fit", fit_, "Find the smallest capacity for each allocator too");
    flags_.DeclareOutput(app);
    AddLater(app, "--what-if", "KEY=V,V...", "Compare settings");
    app.footer(
        "Running out of memory is a result here: the exit status is 0. `expanse replay` and `expanse fit` give 1.\n\n"
        "Examples:\n"
        "  expanse compare snapshot.pickle\n"
        "  expanse compare trace.csv.gz --capacity 1.01x --allocators expanse,caching,per-stream-segments\n"
        "  expanse compare trace.csv --fit --svg memory.svg --json results.json\n"
        "  expanse compare rank0.pickle rank1.pickle\n");
  }

  absl::StatusOr<ExitStatus> Run() override {
    if (absl::Status status = flags_.Check(allocators_); !status.ok()) return status;
    if (fit_ && !flags_.on_simulator()) return absl::InvalidArgumentError("--fit: needs the simulated device");
    if (trace_.paths.empty()) trace_.paths.push_back("");  // Load says that none is named
    if (trace_.paths.size() > 1 && flags_.wants_picture()) {
      return absl::InvalidArgumentError("--svg: draws one trace, and several are named");
    }
    std::vector<TraceReport> reports;
    for (const std::string& path : trace_.paths) {
      absl::StatusOr<bench::LoadedTrace> loaded = trace_.Load(path);
      if (!loaded.ok()) return loaded.status();
      absl::StatusOr<std::vector<bench::ReplayResult>> results = Compare(loaded->trace);
      if (!results.ok()) return results.status();
      TraceReport report{std::move(loaded->trace), *std::move(results), std::string()};
      report.title = Title(report.trace, flags_.DescribeDevice(report.results.front()));
      reports.push_back(std::move(report));
    }
    if (flags_.ShowsTable()) {
      if (absl::Status status = WriteStandardOutput(Table(reports)); !status.ok()) return status;
    }
    if (absl::Status status = flags_.WriteReports(reports); !status.ok()) return status;
    return kDone;
  }

 private:
  absl::StatusOr<std::vector<bench::ReplayResult>> Compare(const bench::Trace& trace) const {
    bench::ReplayOptions options = flags_.Resolve(trace);
    options.measure_host_time = true;
    std::vector<bench::ReplayResult> results;
    for (const std::string& allocator : allocators_) {
      options.allocator = allocator;
      ProgressBar bar(allocator);
      options.progress = [&bar](uint64_t done, uint64_t total) { bar.Update(done, total); };
      absl::StatusOr<bench::ReplayResult> result = bench::Replay(trace, options);
      if (!result.ok()) return result.status();
      if (result->hazards.value_or(0) > 0) Warn(absl::StrCat(allocator, ": ", result->failure_message));
      if (fit_) {
        if (absl::Status status = AddSmallestCapacity(trace, options, *result); !status.ok()) return status;
      }
      results.push_back(*std::move(result));
    }
    return results;
  }

  // Above the table of several traces stands a line for each.
  std::string Table(const std::vector<TraceReport>& reports) const {
    std::string text;
    std::vector<bench::ReplayResult> results;
    std::vector<std::string> names;
    for (const TraceReport& report : reports) {
      absl::StrAppend(&text, Headline(report.trace, flags_.DescribeDevice(report.results.front())));
      for (const bench::ReplayResult& result : report.results) {
        results.push_back(result);
        names.push_back(ShortName(report.trace));
      }
    }
    if (reports.size() == 1) names.clear();
    return absl::StrCat(text, "\n", CompareTable(results, names));
  }

  static absl::Status AddSmallestCapacity(const bench::Trace& trace, bench::ReplayOptions options,
                                          bench::ReplayResult& result) {
    options.capacity = std::max(options.capacity, LargestFitCapacity(trace));
    options.repeat = 1;
    options.record_timeline = false;
    options.measure_host_time = false;
    absl::StatusOr<bench::ReplayResult> fit = bench::Fit(trace, options);
    if (absl::IsNotFound(fit.status())) return absl::OkStatus();
    if (!fit.ok()) return fit.status();
    result.smallest_capacity = fit->smallest_capacity;
    result.live_at_smallest = fit->live_at_smallest;
    return absl::OkStatus();
  }

  TraceFlags trace_;
  std::vector<std::string> allocators_;
  ReplayFlags flags_;
  bool fit_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCompareCommand() { return std::make_unique<CompareCommand>(); }

}  // namespace expanse::tool

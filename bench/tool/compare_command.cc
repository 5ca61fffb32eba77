// expanse compare TRACE: several allocators, one table.

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
    trace_.Declare(app, "TRACE");
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
        "  expanse compare trace.csv --fit --svg memory.svg --json results.json\n");
  }

  absl::StatusOr<ExitStatus> Run() override {
    if (absl::Status status = flags_.Check(); !status.ok()) return status;
    if (fit_ && !flags_.on_simulator()) return absl::InvalidArgumentError("--fit: needs the simulated device");
    absl::StatusOr<bench::LoadedTrace> loaded = trace_.Load();
    if (!loaded.ok()) return loaded.status();
    const bench::Trace& trace = loaded->trace;

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
        absl::StatusOr<std::optional<Bytes>> smallest = SmallestCapacity(trace, options);
        if (!smallest.ok()) return smallest.status();
        result->smallest_capacity = *smallest;
      }
      results.push_back(*std::move(result));
    }
    const std::string device = flags_.DescribeDevice(results.front());
    if (flags_.ShowsTable()) {
      const std::string text = absl::StrCat(Headline(trace, device), CompareTable(results));
      if (absl::Status status = WriteStandardOutput(text); !status.ok()) return status;
    }
    if (absl::Status status = flags_.WriteReports(trace, results, Title(trace, device)); !status.ok()) {
      return status;
    }
    return kDone;
  }

 private:
  static absl::StatusOr<std::optional<Bytes>> SmallestCapacity(const bench::Trace& trace,
                                                               bench::ReplayOptions options) {
    options.capacity = std::max(options.capacity, LargestFitCapacity(trace));
    options.repeat = 1;
    options.record_timeline = false;
    options.measure_host_time = false;
    absl::StatusOr<bench::ReplayResult> fit = bench::Fit(trace, options);
    if (fit.ok()) return fit->smallest_capacity;
    if (fit.status().code() == absl::StatusCode::kNotFound) return std::nullopt;
    return fit.status();
  }

  TraceFlags trace_;
  std::vector<std::string> allocators_;
  ReplayFlags flags_;
  bool fit_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCompareCommand() { return std::make_unique<CompareCommand>(); }

}  // namespace expanse::tool

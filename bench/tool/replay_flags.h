// The options that replay, compare and fit share.

#ifndef EXPANSE_BENCH_TOOL_REPLAY_FLAGS_H_
#define EXPANSE_BENCH_TOOL_REPLAY_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/replay/replay.h"
#include "bench/replay/report_json.h"
#include "bench/tool/size.h"
#include "bench/tool/trace_flags.h"
#include "bench/trace/trace.h"

namespace expanse::tool {

// What one trace gave.
struct TraceReport {
  bench::Trace trace;
  std::vector<bench::ReplayResult> results;
  std::string title;  // of its picture
};

// How it is replayed. Declare what a command wants, then Resolve once the trace is there.
class ReplayFlags {
 public:
  void DeclareDevice(CLI::App& app);  // device, capacity, costs and what the allocators are told
  void DeclareReplay(CLI::App& app);  // how often, how far, what is checked
  void DeclareOutput(CLI::App& app);  // reports

  void DeclareRecord(CLI::App& app);  // of one replay

  // OK if every output can probably be written and the options go together, each of them with something to do where
  // these allocators replay.
  [[nodiscard]] absl::Status Check(absl::Span<const std::string> allocators) const;
  // The options for one replay of `trace`, but for the allocator.
  [[nodiscard]] bench::ReplayOptions Resolve(const bench::Trace& trace) const;
  // Writes the JSON and the picture that were asked for. The JSON of several traces is an array with the object of
  // each; a picture is of one trace.
  [[nodiscard]] absl::Status WriteReports(absl::Span<const TraceReport> reports) const;
  // Writes the recording that was asked for.
  [[nodiscard]] absl::Status WriteRecording(const bench::ReplayResult& result) const;
  [[nodiscard]] bool wants_picture() const { return !svg_.empty(); }
  // Whether the standard output is free for a table.
  [[nodiscard]] bool ShowsTable() const { return json_ != "-" && svg_ != "-" && record_ != "-"; }
  [[nodiscard]] bool on_simulator() const { return !options_.cuda_device.has_value(); }
  [[nodiscard]] bool capacity_given() const { return capacity_.has_value(); }

  // "simulated device of 80.00 GiB, costs 'default'"
  [[nodiscard]] std::string DescribeDevice(const bench::ReplayResult& result) const;

 private:
  // An option that only one allocator listens to.
  struct Own {
    const CLI::Option* option;
    std::string allocator;
  };

  void WarnOfNoEffect(absl::Span<const std::string> allocators) const;

  bench::ReplayOptions options_;
  std::optional<RelativeSize> capacity_, limit_;
  std::string json_, svg_, record_;
  std::vector<Own> own_;
  const CLI::Option* costs_option_ = nullptr;
  const CLI::Option* seed_option_ = nullptr;  // null where the command replays nothing that is touched
};

// Declares --allocators, a list separated by commas; all of them unless given.
void DeclareAllocators(CLI::App& app, std::vector<std::string>* allocators);
// Up to where capacities are tried for want of other orders: 80 GiB or 16 times peak live, whichever is more, but
// at most what a simulated device may have.
[[nodiscard]] Bytes LargestFitCapacity(const bench::Trace& trace);
// OK, or which allocator is not known, and the nearest that is.
[[nodiscard]] absl::Status CheckAllocator(const std::string& name);

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_REPLAY_FLAGS_H_

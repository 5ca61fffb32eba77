#include "bench/tool/replay_flags.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/replay/memory_svg.h"
#include "bench/replay/table.h"
#include "bench/tool/flags.h"
#include "bench/tool/output.h"
#include "bench/tool/suggest.h"
#include "bench/trace/base_format.h"
#include "vmm/sim/cost_model.h"

namespace expanse::tool {
namespace {

constexpr size_t kMaxCostFile = 1 << 20;

std::vector<std::string> AllocatorNames() {
  std::vector<std::string> names;
  for (const std::string_view name : bench::BenchAllocatorNames()) names.emplace_back(name);
  return names;
}

absl::StatusOr<std::optional<DeviceOrdinal>> ParseDevice(const std::string& text) {
  if (text == "sim") return std::nullopt;
  if (absl::StartsWith(text, "cuda:")) {
    absl::StatusOr<uint64_t> ordinal = ParseCount(text.substr(5));
    if (ordinal.ok() && *ordinal < 1024) return DeviceOrdinal(static_cast<int>(*ordinal));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no device; expected sim or cuda:N, as cuda:0"));
}

// A device whose memory is less than one chunk runs nothing, and is what a forgotten unit makes of a size.
absl::StatusOr<RelativeSize> ParseCapacity(const std::string& text) {
  constexpr Bytes kSmallest = MiB(2);
  absl::StatusOr<RelativeSize> size = ParseRelativeSize(text);
  if (size.ok() && size->multiple == 0 && size->bytes < kSmallest) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is ", ToString(size->bytes), ", expected at least ",
                                                   ToString(kSmallest), ", as 80GB"));
  }
  return size;
}

absl::StatusOr<sim::CostModel> ParseCosts(const std::string& text) {
  absl::StatusOr<sim::CostModel> preset = sim::CostModel::Preset(text);
  if (preset.ok()) return preset;
  std::error_code error;
  const bool exists = std::filesystem::exists(text, error);
  if (!exists) {
    const std::vector<std::string> names = sim::CostModel::PresetNames();
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is neither a preset (", absl::StrJoin(names, ", "),
                                                   ") nor a file", DidYouMean(text, names)));
  }
  // A file named by mistake may have no end. What fills the buffer is longer than any cost file.
  std::ifstream file(text);
  std::string contents(kMaxCostFile, '\0');
  file.read(contents.data(), static_cast<std::streamsize>(contents.size()));
  if (file.bad() || (file.fail() && !file.eof())) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read '", text, "'"));
  }
  if (!file.eof()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' holds ", kMaxCostFile, " bytes or more, expected a cost file of a few lines"));
  }
  contents.resize(static_cast<size_t>(file.gcount()));
  return sim::CostModel::Parse(contents, text);
}

absl::StatusOr<std::vector<std::string>> ParseAllocators(const std::string& text) {
  std::vector<std::string> names = absl::StrSplit(text, ',', absl::SkipEmpty());
  if (names.empty()) return absl::InvalidArgumentError("no allocator is named");
  for (const std::string& name : names) {
    if (absl::Status status = CheckAllocator(name); !status.ok()) return status;
  }
  return names;
}

}  // namespace

absl::Status CheckAllocator(const std::string& name) {
  const std::vector<std::string> names = AllocatorNames();
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  if (name == "driver-pool") return ComesLater("the allocator 'driver-pool'");
  return absl::InvalidArgumentError(
      absl::StrCat("unknown allocator '", name, "'; there are ", absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

void DeclareAllocators(CLI::App& app, std::vector<std::string>* allocators) {
  *allocators = AllocatorNames();
  AddParsed(app, "--allocators", allocators, ParseAllocators, "A,B,...",
            absl::StrCat("Allocators to compare [", absl::StrJoin(*allocators, ","), "]"));
}

Bytes LargestFitCapacity(const bench::Trace& trace) {
  // No simulated device is larger than 1024 TiB.
  return std::max(GiB(80), std::min(bench::Summarize(trace).peak_live, TiB(64)) * 16);
}

void ReplayFlags::DeclareDevice(CLI::App& app) {
  AddParsed(app, "--device", &options_.cuda_device, ParseDevice, "sim|cuda:N",
            "The simulated device or a real one [sim]");
  AddParsed(app, "--capacity", &capacity_, ParseCapacity, "SIZE",
            "Memory of the simulated device, or as 1.01x a multiple of the trace's peak live bytes [80GiB]");
  AddParsed(app, "--limit", &limit_, ParseRelativeSize, "SIZE",
            "The most physical memory an allocator may hold, or a multiple as above [no limit]");
  const auto own = [this](const std::string& allocator, const CLI::Option* option) {
    own_.push_back({option, allocator});
  };
  own("expanse",
      AddChoice<Growth>(
          app, "--growth", &options_.growth,
          {{"lazy", Growth::kLazy}, {"balanced", Growth::kBalanced}, {"frugal", Growth::kFrugal}},
          "expanse: create memory first, or move idle memory first, or the one or the other by what it costs "
          "[balanced]"));
  own("expanse",
      AddSize(app, "--chunk", &options_.chunk_size, "expanse: size of a chunk of physical memory [its own choice]"));
  own("preallocated",
      AddSize(app, "--prealloc", &options_.prealloc, "preallocated: size of its first block [0.9 of the capacity]"));
  own("expanse",
      AddSize(app, "--prewarm", &options_.prewarm, "expanse: memory that is created before the first request [none]"));
  AddCount(app, "--lag", &options_.lag, "A block's last work completes this many events after its free [0]");
  costs_option_ = AddParsed(
      app, "--costs", &options_.costs, ParseCosts, "PRESET|FILE",
      absl::StrCat("What driver calls are modelled to cost: ", absl::StrJoin(sim::CostModel::PresetNames(), ", "),
                   ", or a file [", options_.costs.name, "]"));
  app.add_flag("--retry-oom", options_.retry_oom, "Ask for the bytes of each oom_ mark, and free them at once");
}

void ReplayFlags::DeclareReplay(CLI::App& app) {
  AddCount(app, "--repeat", &options_.repeat, "Replay the trace so many times [1]");
  app.add_flag("--keep-going", options_.keep_going, "Skip requests that fail instead of stopping at the first");
  app.add_flag("--touch", options_.touch, "Write into every block and check it before it is freed");
  seed_option_ = AddCount(app, "--seed", &options_.seed, "Seed of what --touch writes [0]");
}

void ReplayFlags::DeclareOutput(CLI::App& app) {
  AddOutput(app, "--json", &json_, "Write the results as JSON; - is the standard output, without tables");
  AddOutput(app, "--svg", &svg_, "Write a picture of memory over time; - is the standard output, without tables");
  AddLater(app, "--html", "FILE", "Write a report");
  AddLater(app, "--perfetto", "FILE", "Write a time line for Perfetto");
}

void ReplayFlags::DeclareRecord(CLI::App& app) {
  own_.push_back({AddOutput(app, "--record", &record_,
                            "expanse: write what its own recorder kept as a trace, compressed for .gz; - is the "
                            "standard output, without tables"),
                  "expanse"});
}

void ReplayFlags::WarnOfNoEffect(absl::Span<const std::string> allocators) const {
  for (const Own& own : own_) {
    if (absl::c_linear_search(allocators, own.allocator)) continue;
    WarnWithoutEffect(*own.option, absl::StrCat("on ", absl::StrJoin(allocators, ", "), "; it is for ", own.allocator));
  }
  if (seed_option_ != nullptr && !options_.touch) WarnWithoutEffect(*seed_option_, "without --touch");
  if (!on_simulator()) WarnWithoutEffect(*costs_option_, "on a real device");
}

absl::Status ReplayFlags::Check(absl::Span<const std::string> allocators) const {
  if (!record_.empty() && !absl::c_linear_search(allocators, "expanse")) {
    return absl::InvalidArgumentError(absl::StrCat("--record: '", record_, "' would not be written by ",
                                                   absl::StrJoin(allocators, ", "),
                                                   "; expected the allocator expanse"));
  }
  WarnOfNoEffect(allocators);
  if (json_ == "-" && svg_ == "-") {
    return absl::InvalidArgumentError("--json - and --svg - would both write to the standard output");
  }
  if (record_ == "-" && (json_ == "-" || svg_ == "-")) {
    return absl::InvalidArgumentError("--record - and another output would both write to the standard output");
  }
  if (options_.repeat == 0) return absl::InvalidArgumentError("--repeat: must be at least 1");
  if (!on_simulator()) {
    if (capacity_.has_value()) {
      return absl::InvalidArgumentError("--capacity: a real device has the memory it has; --limit bounds what is used");
    }
    if (options_.lag > 0) return absl::InvalidArgumentError("--lag: needs the simulated device");
  }
  for (const std::string& path : {json_, svg_, record_}) {
    if (absl::Status status = CheckWritable(path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bench::ReplayOptions ReplayFlags::Resolve(const bench::Trace& trace) const {
  bench::ReplayOptions options = options_;
  const Bytes peak_live = bench::Summarize(trace).peak_live;
  if (capacity_.has_value()) options.capacity = capacity_->Of(peak_live);
  if (limit_.has_value()) options.limit = limit_->Of(peak_live);
  options.record_timeline = !svg_.empty();
  options.record = !record_.empty();
  return options;
}

absl::Status ReplayFlags::WriteRecording(const bench::ReplayResult& result) const {
  if (record_.empty()) return absl::OkStatus();
  if (!result.recording)
    return absl::UnavailableError("--record: the allocator could not be made, so there is nothing");
  absl::StatusOr<bench::Trace> trace = bench::ParseBaseFormat(*result.recording, record_);
  if (!trace.ok()) return trace.status();
  return WriteTraceTo(*trace, record_);
}

absl::Status ReplayFlags::WriteReports(absl::Span<const TraceReport> reports) const {
  if (!json_.empty()) {
    std::vector<std::string> objects;
    for (const TraceReport& report : reports) {
      bench::ReportDevice device;
      device.simulated = on_simulator();
      if (!report.results.empty()) device.name = report.results.front().device_name;
      device.costs = options_.costs.name;
      objects.push_back(bench::ReportJson(report.trace, device, report.results));
    }
    const std::string text =
        objects.size() == 1 ? objects.front() : absl::StrCat("[\n", absl::StrJoin(objects, ",\n"), "]\n");
    if (absl::Status status = WriteOutput(json_, text); !status.ok()) return status;
  }
  if (svg_.empty()) return absl::OkStatus();
  const TraceReport& report = reports.front();
  return WriteOutput(svg_, bench::DrawMemorySvg(report.title, report.results));
}

std::string ReplayFlags::DescribeDevice(const bench::ReplayResult& result) const {
  const std::string size = bench::HumanBytes(result.capacity);
  if (on_simulator()) return absl::StrCat("simulated device of ", size, ", modelled costs '", options_.costs.name, "'");
  return absl::StrCat("device cuda:", options_.cuda_device->value(), " (", result.device_name, ") of ", size);
}

}  // namespace expanse::tool

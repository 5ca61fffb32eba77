#include "bench/replay/replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/replay/fit.h"
#include "bench/replay/host_time.h"
#include "bench/replay/program.h"
#include "bench/replay/replay_device.h"
#include "bench/replay/replayer.h"

namespace expanse::bench {
namespace {

constexpr uint64_t kMaxRows = uint64_t{1} << 62;  // counts of rows and events stay within 64 bits
constexpr uint64_t kMaxMarks = 10'000'000;        // each mark of each run has figures in the result

absl::Status CheckOptions(const Trace& trace, const ReplayOptions& options) {
  if (options.repeat == 0) return absl::InvalidArgumentError("repeat must be at least 1");
  const uint64_t rows = std::max<uint64_t>(1, trace.events.size());
  const uint64_t marks = trace.labels.size();
  uint64_t most = kMaxRows / rows;
  if (marks > 0) most = std::min(most, std::max<uint64_t>(1, kMaxMarks / marks));
  if (options.repeat > most) {
    return absl::InvalidArgumentError(absl::StrCat("repeat is ", options.repeat, ", expected at most ", most, " for ",
                                                   trace.name, " with its ", rows, " rows and ", marks, " marks"));
  }
  if (options.cuda_device.has_value() && options.lag > 0) {
    return absl::InvalidArgumentError("lag needs the simulated device: it sets when queued work completes");
  }
  return absl::OkStatus();
}

// Room for all that a replay asks for: its rows, the frees between runs and retries of failed requests; blocks that
// become free later than they were freed, and growths, add some. With more than fits, the recording begins later.
uint64_t EventsToRecord(const Trace& trace, const ReplayOptions& options) {
  constexpr uint64_t kMost = uint64_t{1} << 26;  // 2 GiB of host memory
  const uint64_t rows = 4 * (trace.events.size() + trace.block_count()) + 1024;
  return options.repeat > kMost / rows ? kMost : rows * options.repeat;
}

// The allocator could not even be made for lack of memory: the first request is as good as refused.
ReplayResult RefusedAtOnce(const Trace& trace, const ReplayOptions& options, const ReplayDevice& device,
                           const absl::Status& why) {
  ReplayResult result;
  result.allocator = options.allocator;
  result.device_name = device.name();
  result.capacity = device.total_memory();
  result.events = Summarize(trace).events * options.repeat;
  result.out_of_memory = true;
  result.failed_at_event = 0;
  result.failure_message = absl::StrCat("creating the allocator: ", why.message());
  const DriverUse use = device.use();
  result.driver_calls = use.calls;
  result.modelled_driver_us = use.modelled_us;
  result.measured_driver_us = use.measured_us;
  result.stall_us = use.stall_us;
  return result;
}

AllocatorFactory FactoryFor(const ReplayOptions& options) {
  return [name = options.allocator](const Driver& driver, const BenchAllocatorOptions& allocator_options) {
    return CreateBenchAllocator(name, driver, allocator_options);
  };
}

}  // namespace

BenchAllocatorOptions AllocatorOptionsFor(const Trace& trace, const ReplayOptions& options,
                                          const ReplayDevice& device) {
  BenchAllocatorOptions allocator_options;
  allocator_options.device = device.ordinal();
  allocator_options.limit = options.limit;
  allocator_options.chunk_size = options.chunk_size;
  allocator_options.growth = options.growth;
  allocator_options.prealloc = options.prealloc;
  allocator_options.prewarm = options.prewarm;
  if (options.record) allocator_options.record_events = EventsToRecord(trace, options);
  return allocator_options;
}

absl::StatusOr<ReplayResult> ReplayWith(const Trace& trace, const ReplayOptions& options,
                                        const AllocatorFactory& factory) {
  if (absl::Status status = CheckOptions(trace, options); !status.ok()) return status;
  absl::StatusOr<ReplayResult> result;
  {
    absl::StatusOr<std::unique_ptr<ReplayDevice>> device = ReplayDevice::Open(trace, options);
    if (!device.ok()) return device.status();
    std::optional<Program> program = ProgramFor(trace, options, **device);
    absl::StatusOr<std::unique_ptr<BenchAllocator>> allocator =
        factory((*device)->driver(), AllocatorOptionsFor(trace, options, **device));
    if (allocator.status().code() == absl::StatusCode::kResourceExhausted) {
      result = RefusedAtOnce(trace, options, **device, allocator.status());
    } else if (!allocator.ok()) {
      return allocator.status();
    } else {
      result = Replayer(trace, options, **device, program.has_value() ? &*program : nullptr, **allocator).Run();
      if (result.ok() && options.record) {
        absl::StatusOr<std::string> recording = (*allocator)->Recording();
        if (!recording.ok()) return recording.status();
        result->recording = *std::move(recording);
      }
      allocator->reset();
    }
    if (!result.ok()) return result;
    if (!options.cuda_device.has_value()) {
      result->hazards = (*device)->hazard_count();
      result->hazard_descriptions = (*device)->FirstHazards();
    }
    if (absl::Status status = (*device)->CheckNothingLeft(); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat(options.allocator, ", ", trace.name, ": ", status.message()));
    }
  }
  // The replay's own device is gone: only one simulator may be alive.
  const bool undisturbed =
      result->failed_allocations == 0 && !result->out_of_memory && result->hazards.value_or(0) == 0;
  if (options.measure_host_time && undisturbed && options.lag == 0 && !options.touch) {
    absl::StatusOr<std::optional<double>> host = MeasureHostNanosecondsPerPair(trace, options, factory);
    if (!host.ok()) return host.status();
    result->host_ns_per_pair = *host;
  }
  return result;
}

absl::StatusOr<ReplayResult> FitWith(const Trace& trace, const ReplayOptions& options,
                                     const AllocatorFactory& factory) {
  if (options.cuda_device.has_value()) return absl::InvalidArgumentError("fit needs the simulated device");
  ReplayOptions probing = options;
  probing.keep_going = false;
  probing.record_timeline = false;
  probing.measure_host_time = false;
  auto probe = [&trace, &probing, &factory](Bytes capacity) -> absl::StatusOr<bool> {
    probing.capacity = capacity;
    absl::StatusOr<ReplayResult> result = ReplayWith(trace, probing, factory);
    if (!result.ok()) return result.status();
    if (result->hazards.value_or(0) > 0) return absl::InternalError(result->failure_message);
    return !result->out_of_memory;
  };
  absl::StatusOr<std::optional<Bytes>> smallest = SmallestCapacity(Summarize(trace).peak_live, options.capacity, probe);
  if (!smallest.ok()) return smallest.status();
  if (!smallest->has_value()) {
    return absl::NotFoundError(
        absl::StrCat(options.allocator, " runs ", trace.name, " on no capacity up to ", ToString(options.capacity)));
  }
  ReplayOptions last = options;
  last.capacity = **smallest;
  absl::StatusOr<ReplayResult> result = ReplayWith(trace, last, factory);
  if (!result.ok()) return result;
  result->smallest_capacity = **smallest;
  result->live_at_smallest = result->peak_live;
  return result;
}

absl::StatusOr<ReplayResult> Replay(const Trace& trace, const ReplayOptions& options) {
  return ReplayWith(trace, options, FactoryFor(options));
}

absl::StatusOr<ReplayResult> Fit(const Trace& trace, const ReplayOptions& options) {
  return FitWith(trace, options, FactoryFor(options));
}

}  // namespace expanse::bench

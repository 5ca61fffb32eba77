#include "bench/replay/host_time.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/replay/program.h"
#include "bench/replay/replay_device.h"
#include "bench/replay/simulated_replay_device.h"

namespace expanse::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr int kTimedPasses = 3;
// Calls between two readings of the clock: few enough that most stretches of some pass run undisturbed by other
// processes, many enough that the readings cost next to nothing.
constexpr size_t kStretch = 1024;

// Serves every request at once with an address of its own.
class NullAllocator final : public BenchAllocator {
 public:
  absl::StatusOr<DeviceAddress> Allocate(Bytes, StreamHandle) override { return DeviceAddress(next_ += 512); }
  absl::Status Free(DeviceAddress, StreamHandle) override { return absl::OkStatus(); }
  absl::Status RecordUse(DeviceAddress, StreamHandle) override { return absl::OkStatus(); }
  AllocatorFigures figures() const override { return {}; }
  absl::Status CheckInvariants() const override { return absl::OkStatus(); }

 private:
  uint64_t next_ = 0;
};

// The trace with everything looked up beforehand, so that the timed loop only walks it.
struct Call {
  enum class Kind : uint8_t { kAllocate, kFree, kUse, kUntimed };
  Kind kind;
  uint32_t block;
  StreamHandle stream;
  uint64_t value;  // kAllocate: bytes; kUntimed: index of the event
};

class Timing {
 public:
  Timing(const Trace& trace, ReplayDevice& device) : trace_(trace), device_(device) {
    calls_.reserve(trace.events.size());
    for (uint64_t i = 0; i < trace.events.size(); ++i) AddCall(trace.events[i], i);
    sizes_.resize(trace.block_count());
    streams_.resize(trace.block_count());
    for (const Call& call : calls_) {
      if (call.kind != Call::Kind::kAllocate) continue;
      sizes_[call.block] = Bytes(call.value);
      streams_[call.block] = call.stream;
    }
  }

  [[nodiscard]] uint64_t allocations_and_frees() const { return allocations_and_frees_; }

  // Host time of each stretch of one pass, without what passed below the driver table; nullopt where a request failed.
  // `program` may be null: then work and wait rows are left out.
  absl::StatusOr<std::optional<std::vector<nanoseconds>>> Pass(BenchAllocator& allocator, Program* program) {
    addresses_.assign(trace_.block_count(), DeviceAddress());
    std::vector<nanoseconds> stretches;
    for (size_t begin = 0; begin < calls_.size(); begin += kStretch) {
      const size_t end = std::min(begin + kStretch, calls_.size());
      nanoseconds total{};
      nanoseconds inside = device_.use().host_inside;
      Clock::time_point start = Clock::now();
      for (size_t i = begin; i < end; ++i) {
        const Call& call = calls_[i];
        absl::Status status;
        if (call.kind != Call::Kind::kUntimed) {
          status = Timed(allocator, call);
        } else if (program != nullptr) {
          total += Clock::now() - start - (device_.use().host_inside - inside);
          status = Untimed(trace_.events[call.value], *program);
          inside = device_.use().host_inside;
          start = Clock::now();
        }
        if (status.code() == absl::StatusCode::kResourceExhausted) return std::nullopt;
        if (!status.ok()) return status;
      }
      stretches.push_back(total + (Clock::now() - start) - (device_.use().host_inside - inside));
    }
    return stretches;
  }

  absl::Status FreeLiveBlocks(BenchAllocator& allocator) {
    for (uint32_t i = 0; i < addresses_.size(); ++i) {
      if (addresses_[i].is_null()) continue;
      if (absl::Status status = allocator.Free(addresses_[i], streams_[i]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  void AddCall(const TraceEvent& event, uint64_t index) {
    switch (event.op) {
      case TraceOp::kAllocate:
      case TraceOp::kFree:
      case TraceOp::kUse: {
        const Call::Kind kind = event.op == TraceOp::kAllocate ? Call::Kind::kAllocate
                                : event.op == TraceOp::kFree   ? Call::Kind::kFree
                                                               : Call::Kind::kUse;
        if (kind != Call::Kind::kUse) ++allocations_and_frees_;
        calls_.push_back({kind, event.block, device_.stream(event.stream), event.value});
        break;
      }
      case TraceOp::kWork:
      case TraceOp::kWait:
        calls_.push_back({Call::Kind::kUntimed, event.block, device_.stream(event.stream), index});
        break;
      case TraceOp::kMark:
        break;
    }
  }

  absl::Status Timed(BenchAllocator& allocator, const Call& call) {
    if (call.kind == Call::Kind::kAllocate) {
      absl::StatusOr<DeviceAddress> address = allocator.Allocate(Bytes(call.value), call.stream);
      if (!address.ok()) return address.status();
      addresses_[call.block] = *address;
      return absl::OkStatus();
    }
    if (call.kind == Call::Kind::kUse) return allocator.RecordUse(addresses_[call.block], call.stream);
    return allocator.Free(std::exchange(addresses_[call.block], DeviceAddress()), call.stream);
  }

  absl::Status Untimed(const TraceEvent& event, Program& program) {
    const StreamHandle stream = device_.stream(event.stream);
    if (event.op == TraceOp::kWait) return device_.Wait(stream);
    return program.Worked(event.block, {addresses_[event.block], sizes_[event.block]}, stream, event.value);
  }

  const Trace& trace_;
  ReplayDevice& device_;
  std::vector<Call> calls_;
  std::vector<Bytes> sizes_;           // by block
  std::vector<StreamHandle> streams_;  // by block
  std::vector<DeviceAddress> addresses_;
  uint64_t allocations_and_frees_ = 0;
};

// The fastest time of each stretch over several passes.
class Fastest {
 public:
  void Add(const std::vector<nanoseconds>& times) {
    if (best_.empty()) best_ = times;
    for (size_t i = 0; i < times.size(); ++i) best_[i] = std::min(best_[i], times[i]);
  }
  [[nodiscard]] nanoseconds Sum() const { return std::accumulate(best_.begin(), best_.end(), nanoseconds(0)); }

 private:
  std::vector<nanoseconds> best_;
};

}  // namespace

absl::StatusOr<std::optional<double>> MeasureHostNanosecondsPerPair(const Trace& trace, const ReplayOptions& options,
                                                                    const AllocatorFactory& factory) {
  ReplayOptions plain = options;
  plain.lag = 0;
  plain.touch = false;
  plain.record = false;
  absl::StatusOr<std::unique_ptr<ReplayDevice>> device = ReplayDevice::Open(trace, plain);
  if (!device.ok()) return device.status();
  std::optional<Program> program = ProgramFor(trace, plain, **device);
  absl::StatusOr<std::unique_ptr<BenchAllocator>> allocator =
      factory((*device)->driver(), AllocatorOptionsFor(trace, plain, **device));
  if (!allocator.ok()) return allocator.status();

  Timing timing(trace, **device);
  if (timing.allocations_and_frees() == 0) return std::nullopt;
  Fastest fastest, baseline;
  for (int pass = 0; pass <= kTimedPasses; ++pass) {
    if (program.has_value()) program.emplace(ProgramFor(trace, plain, **device).value());
    absl::StatusOr<std::optional<std::vector<nanoseconds>>> times =
        timing.Pass(**allocator, program.has_value() ? &*program : nullptr);
    if (!times.ok()) return times.status();
    if (!times->has_value()) return std::nullopt;
    if (pass > 0) fastest.Add(**times);  // the first one warms up
    if (absl::Status status = timing.FreeLiveBlocks(**allocator); !status.ok()) return status;
  }
  for (int pass = 0; pass <= kTimedPasses; ++pass) {
    NullAllocator nothing;
    absl::StatusOr<std::optional<std::vector<nanoseconds>>> times = timing.Pass(nothing, nullptr);
    if (!times.ok()) return times.status();
    if (pass > 0) baseline.Add(**times);
  }
  const nanoseconds own = std::max(fastest.Sum() - baseline.Sum(), nanoseconds(0));
  return static_cast<double>(own.count()) / (static_cast<double>(timing.allocations_and_frees()) / 2);
}

}  // namespace expanse::bench

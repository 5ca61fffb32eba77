#include "bench/replay/simulated_replay_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace expanse::bench {
namespace {

double Microseconds(sim::VirtualTime time) { return std::chrono::duration<double, std::micro>(time).count(); }

// Adds `times` (1 or -1) the counts of `other`.
void Add(const sim::Counters& other, int times, sim::Counters* sum) {
  for (int i = 0; i < kEntryPointCount; ++i) {
    sum->calls[i] += times * other.calls[i];
    sum->modelled[i] += times * other.modelled[i];
  }
  sum->stalled += times * other.stalled;
  sum->host_inside += times * other.host_inside;
}

}  // namespace

class SimulatedReplayDevice::Own {
 public:
  explicit Own(SimulatedReplayDevice& device) : device_(device) {
    Add(device_.simulator_->counters(), -1, &device_.own_);
  }
  ~Own() { Add(device_.simulator_->counters(), 1, &device_.own_); }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;

 private:
  SimulatedReplayDevice& device_;
};

absl::StatusOr<std::unique_ptr<SimulatedReplayDevice>> SimulatedReplayDevice::Open(const Trace& trace,
                                                                                   const ReplayOptions& options) {
  sim::Config config;
  config.devices.front().total_memory = options.capacity;
  config.memory = options.touch ? sim::MemoryMode::kReal : sim::MemoryMode::kAccounting;
  config.costs = options.costs;
  config.calls_advance_clock = options.lag == 0;
  // Filling all of a device would take that much memory of the host; what is touched is checked anyway.
  config.poison = false;
  absl::StatusOr<std::unique_ptr<sim::Simulator>> simulator = sim::Simulator::Create(config);
  if (!simulator.ok()) return simulator.status();
  std::unique_ptr<SimulatedReplayDevice> device(new SimulatedReplayDevice(*std::move(simulator), options.lag > 0));
  if (absl::Status status = device->OpenContext(device->driver(), trace); !status.ok()) return status;
  device->ResetUse();
  return device;
}

SimulatedReplayDevice::~SimulatedReplayDevice() {
  if (event_ != nullptr) (void)driver().event_destroy(event_);
  CloseContext(driver());
}

DriverUse SimulatedReplayDevice::use() const {
  sim::Counters counters = simulator_->counters();
  Add(own_, -1, &counters);
  DriverUse use;
  use.calls = counters.calls;
  use.modelled_us = Microseconds(counters.TotalModelled());
  if (!clock_counts_events_) use.stall_us = Microseconds(counters.stalled);
  use.host_inside = counters.host_inside;
  return use;
}

void SimulatedReplayDevice::ResetUse() {
  simulator_->ResetCounters();
  own_ = sim::Counters{};
}

absl::Status SimulatedReplayDevice::Wait(StreamHandle stream) {
  Own own(*this);
  return ToStatus(driver(), driver().stream_synchronize(static_cast<abi::Stream>(stream.raw())), "cuStreamSynchronize");
}

std::vector<std::string> SimulatedReplayDevice::FirstHazards() const {
  std::vector<std::string> descriptions;
  for (const sim::Hazard& hazard : simulator_->hazards()) {
    if (descriptions.size() == kMaxHazards) break;
    descriptions.push_back(hazard.description);
  }
  return descriptions;
}

absl::Status SimulatedReplayDevice::CheckNothingLeft() {
  if (event_ != nullptr) (void)driver().event_destroy(std::exchange(event_, nullptr));
  CloseStreams(driver());
  // The context itself is still ours: the driver would free what was left in it.
  sim::Ledger ledger = simulator_->ledger();
  if (ledger.contexts > 0) --ledger.contexts;
  if (ledger.Balanced() || simulator_->hazard_count() > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("not given back to the driver: ", ledger.ToString()));
}

absl::Status SimulatedReplayDevice::Write(DeviceAddress address, absl::Span<const uint8_t> bytes) {
  std::memcpy(address.ptr(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status SimulatedReplayDevice::Read(DeviceAddress address, absl::Span<uint8_t> bytes) {
  std::memcpy(bytes.data(), address.ptr(), bytes.size());
  return absl::OkStatus();
}

absl::Status SimulatedReplayDevice::Launch(StreamHandle stream, AddressRange range, sim::VirtualTime duration) {
  return ToStatus(driver(), simulator_->Launch(stream, duration, {{range, /*writes=*/true}}),
                  absl::StrCat("queueing work on ", ToString(range)));
}

absl::Status SimulatedReplayDevice::LaunchForTicks(StreamHandle stream, AddressRange range, uint64_t ticks) {
  const sim::VirtualTime end = simulator_->now() + kTick * static_cast<int64_t>(ticks);
  return ToStatus(driver(), simulator_->LaunchUntil(stream, end, {{range, /*writes=*/true}}),
                  absl::StrCat("queueing work on ", ToString(range)));
}

absl::Status SimulatedReplayDevice::Order(StreamHandle first, StreamHandle then) {
  Own own(*this);
  if (event_ == nullptr) {
    const abi::Result result = driver().event_create(&event_, abi::kEventDisableTiming);
    if (absl::Status status = ToStatus(driver(), result, "cuEventCreate"); !status.ok()) return status;
  }
  abi::Result result = driver().event_record(event_, static_cast<abi::Stream>(first.raw()));
  if (absl::Status status = ToStatus(driver(), result, "cuEventRecord"); !status.ok()) return status;
  result = driver().stream_wait_event(static_cast<abi::Stream>(then.raw()), event_, 0);
  return ToStatus(driver(), result, "cuStreamWaitEvent");
}

}  // namespace expanse::bench

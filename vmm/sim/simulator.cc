#include "vmm/sim/simulator.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/sim/entry_points.h"
#include "vmm/sim/host_pages.h"

namespace expanse::sim {
namespace {

std::atomic<int64_t> fork_count{0};

absl::Status CheckConfig(const Config& config) {
  if (config.devices.empty() || config.devices.size() > static_cast<size_t>(kMaxDevices)) {
    return absl::InvalidArgumentError(
        absl::StrCat("devices: there must be 1 to ", kMaxDevices, ", not ", config.devices.size()));
  }
  for (size_t i = 0; i < config.devices.size(); ++i) {
    const DeviceConfig& device = config.devices[i];
    const uint64_t granularity = device.granularity.count();
    if (granularity < kHostPage.count() || (granularity & (granularity - 1)) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", i, ": granularity ", granularity, " is not a power of two of at least 4096"));
    }
    if (device.total_memory > TiB(1024)) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", i, ": total_memory ", ToString(device.total_memory), " is above 1024 TiB"));
    }
  }
  if (config.address_space.is_zero() || config.address_space > TiB(65536)) {
    return absl::InvalidArgumentError(
        absl::StrCat("address_space: ", ToString(config.address_space), " is not between 1 byte and 65536 TiB"));
  }
  return absl::OkStatus();
}

Driver MakeTable() {
  Driver driver;
  FillDeviceEntryPoints(driver);
  FillContextEntryPoints(driver);
  FillVirtualMemoryEntryPoints(driver);
  FillClassicMemoryEntryPoints(driver);
  FillPointerEntryPoints(driver);
  FillCopyEntryPoints(driver);
  FillStreamEntryPoints(driver);
  FillUnsupportedEntryPoints(driver);
  return driver;
}

}  // namespace

std::atomic<LiveDriver*>& LiveDriver::Current() {
  static std::atomic<LiveDriver*> current{nullptr};
  return current;
}

int64_t LiveDriver::Forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++fork_count; });
  (void)registered;
  return fork_count.load(std::memory_order_relaxed);
}

class Simulator::Impl {
 public:
  Impl(const Config& config, std::vector<PhysicalMemory> memories, uint64_t number)
      : config(config), live(config, std::move(memories), number), driver(MakeTable()) {}

  const Config config;
  LiveDriver live;
  const Driver driver;
};

absl::StatusOr<std::unique_ptr<Simulator>> Simulator::Create(const Config& config) {
  static std::atomic<uint64_t> created{0};
  if (absl::Status status = CheckConfig(config); !status.ok()) return status;
  std::vector<PhysicalMemory> memories;
  memories.reserve(config.devices.size());
  for (const DeviceConfig& device : config.devices) {
    absl::StatusOr<PhysicalMemory> memory = PhysicalMemory::Create(device, config);
    if (!memory.ok()) return memory.status();
    memories.push_back(*std::move(memory));
  }
  (void)LiveDriver::Forks();  // Count from now on.
  auto impl = std::make_unique<Impl>(config, std::move(memories), ++created);
  LiveDriver* none = nullptr;
  if (!LiveDriver::Current().compare_exchange_strong(none, &impl->live)) {
    return absl::FailedPreconditionError("another simulator is alive in this process");
  }
  return std::unique_ptr<Simulator>(new Simulator(std::move(impl)));
}

Simulator::Simulator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Simulator::~Simulator() { LiveDriver::Current().store(nullptr); }

const Driver& Simulator::driver() const { return impl_->driver; }
const Config& Simulator::config() const { return impl_->config; }

// --- Time -----------------------------------------------------------------------------------------------------------

VirtualTime Simulator::now() const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.timeline.now();
}

void Simulator::Advance(VirtualTime by) {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.timeline.Advance(std::max(by, VirtualTime()));
  impl_->live.state.RaiseDueFaults();
}

bool Simulator::Idle() const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.timeline.Idle();
}

// --- Queued work ----------------------------------------------------------------------------------------------------

namespace {

// What both kinds of launch share; `enqueue` queues the work once its accesses are known.
template <typename EnqueueWork>
abi::Result LaunchWork(DriverState& state, StreamHandle handle, absl::Span<const Access> accesses,
                       EnqueueWork&& enqueue) {
  if (!state.initialized) return abi::kNotInitialized;
  state.RaiseDueFaults();
  ResolvedStream stream;
  if (const abi::Result result = ResolveStream(state, static_cast<abi::Stream>(handle.raw()), &stream);
      result != abi::kSuccess) {
    return result;
  }
  std::vector<WorkAccess> resolved;
  resolved.reserve(accesses.size());
  std::string fault;
  for (const Access& access : accesses) {
    if (access.range.size.is_zero()) continue;
    ResolvedRange range = ResolveRange(state, access.range, access.writes, stream.info.device);
    if (!range.accessible && fault.empty()) {
      fault = absl::StrCat(access.writes ? "writes " : "reads ", ToString(access.range),
                           ", which is not wholly mapped and accessible to device ", stream.info.device.value());
    }
    resolved.push_back({access.range, access.writes, std::move(range.extents)});
  }
  const QueuedWork queued = enqueue(state.timeline, stream.id, resolved);
  ReportRaces(state, queued, resolved);
  if (!fault.empty()) {
    state.Report(Hazard::Kind::kAccessFault,
                 absl::StrCat(queued.work.ToString(), ", to run at ", queued.start.count(), " ns, ", fault));
    state.FaultAt(queued.start, stream.info.device);
  }
  return abi::kSuccess;
}

}  // namespace

abi::Result Simulator::Launch(StreamHandle stream, VirtualTime duration, absl::Span<const Access> accesses) {
  if (duration.count() < 0) return abi::kInvalidValue;
  MutexLock lock(impl_->live.mu);
  return LaunchWork(impl_->live.state, stream, accesses,
                    [&](Timeline& timeline, StreamId id, const std::vector<WorkAccess>& resolved) {
                      return timeline.Enqueue(id, duration, resolved, "kernel");
                    });
}

abi::Result Simulator::LaunchUntil(StreamHandle stream, VirtualTime end, absl::Span<const Access> accesses) {
  MutexLock lock(impl_->live.mu);
  return LaunchWork(impl_->live.state, stream, accesses,
                    [&](Timeline& timeline, StreamId id, const std::vector<WorkAccess>& resolved) {
                      return timeline.EnqueueUntil(id, end, resolved, "kernel");
                    });
}

// --- Faults ---------------------------------------------------------------------------------------------------------

void Simulator::FailNthCall(EntryPoint entry_point, uint64_t n, abi::Result result) {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.faults.FailNthCall(entry_point, n, result);
}

void Simulator::FailNthCallOfAny(uint64_t n, abi::Result result) {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.faults.FailNthCallOfAny(n, result);
}

uint64_t Simulator::FailableCalls() const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.faults.failable_calls();
}

void Simulator::FailCreateAfter(Bytes bytes) {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.faults.FailCreateAfter(bytes);
}

void Simulator::MakeSticky(abi::Result result) {
  MutexLock lock(impl_->live.mu);
  DriverState& state = impl_->live.state;
  for (int device = 0; device < state.device_count(); ++device) {
    state.contexts.MakeSticky(DeviceOrdinal(device), result);
  }
}

void Simulator::DelayCalls(EntryPoint entry_point, VirtualTime by) {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.faults.DelayCalls(entry_point, std::max(by, VirtualTime()));
}

void Simulator::ClearFaults() {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.faults.Clear();
}

void Simulator::ResetStickyError() {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.ResetStickyError();
}

void Simulator::SetTakenByOthers(DeviceOrdinal device, Bytes bytes) {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.memory(device).SetTakenByOthers(bytes);
}

// --- Observation ----------------------------------------------------------------------------------------------------

std::vector<Hazard> Simulator::hazards() const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.hazards();
}

uint64_t Simulator::hazard_count() const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.hazard_count();
}

void Simulator::ClearHazards() {
  MutexLock lock(impl_->live.mu);
  impl_->live.state.ClearHazards();
}

Ledger Simulator::ledger() const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.MakeLedger();
}

Counters Simulator::counters() const {
  MutexLock lock(impl_->live.mu);
  Counters counters = impl_->live.state.counters;
  counters.stalled = impl_->live.state.timeline.stalled();
  return counters;
}

void Simulator::ResetCounters() {
  MutexLock lock(impl_->live.mu);
  DriverState& state = impl_->live.state;
  state.counters = Counters();
  state.timeline.ResetStalled();
  for (PhysicalMemory& memory : state.memories) memory.ResetPeak();
}

Bytes Simulator::committed(DeviceOrdinal device) const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.memory(device).committed();
}

Bytes Simulator::committed_peak(DeviceOrdinal device) const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.memory(device).committed_peak();
}

bool Simulator::IsMapped(AddressRange range) const {
  MutexLock lock(impl_->live.mu);
  DriverState& state = impl_->live.state;
  bool accessible = state.mappings.Covers(range);
  state.mappings.ForEachIn(range, [&](const Mapping& mapping) {
    accessible = accessible && mapping.access.Get(mapping.allocation->device) == abi::kAccessReadWrite;
  });
  return accessible;
}

absl::Status Simulator::CheckInvariants() const {
  MutexLock lock(impl_->live.mu);
  return impl_->live.state.CheckInvariants();
}

}  // namespace expanse::sim

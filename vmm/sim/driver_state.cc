#include "vmm/sim/driver_state.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/sim/entry_traits.h"

namespace expanse::sim {
namespace {

// cuMemAlloc packs small allocations; what one takes is rounded to this. Addresses are whole host pages all the same.
constexpr Bytes kClassicUnit(512);

Bytes LargestGranularity(const Config& config) {
  Bytes largest = kHostPage;
  for (const DeviceConfig& device : config.devices) largest = std::max(largest, device.granularity);
  return largest;
}

VirtualTime FromMicroseconds(double microseconds) {
  return VirtualTime(static_cast<VirtualTime::rep>(std::llround(microseconds * 1000.0)));
}

}  // namespace

DriverState::DriverState(const Config& config, std::vector<PhysicalMemory> memories, uint64_t number)
    : config(config),
      number(number),
      granularity(LargestGranularity(config)),
      addresses(config.memory, config.address_space),
      memories(std::move(memories)),
      contexts(static_cast<int>(config.devices.size())) {}

// --- Devices and contexts -------------------------------------------------------------------------------------------

abi::Result DriverState::CurrentDevice(DeviceOrdinal* device) const {
  const abi::Context current = thread().current();
  if (current == nullptr) return abi::kInvalidContext;
  const std::optional<DeviceOrdinal> found = contexts.DeviceOf(current);
  if (!found) return abi::kInvalidContext;
  if (!contexts.IsLive(*found)) return abi::kContextIsDestroyed;
  *device = *found;
  return abi::kSuccess;
}

void DriverState::DestroyContext(DeviceOrdinal device) {
  timeline.RemoveContext(contexts.ContextOf(device));
  memory(device).Settle();
  due_faults_.erase(std::remove_if(due_faults_.begin(), due_faults_.end(),
                                   [&](const DueFault& fault) { return fault.device == device; }),
                    due_faults_.end());
  std::vector<DeviceAddress> classic;
  mappings.ForEach([&](const Mapping& mapping) {
    if (mapping.allocation->classic && mapping.allocation->device == device) classic.push_back(mapping.range.begin);
  });
  for (const DeviceAddress begin : classic) FreeClassic(begin);
}

// --- A call ---------------------------------------------------------------------------------------------------------

abi::Result DriverState::BeforeArguments(EntryPoint entry_point) {
  const EntryTraits& traits = TraitsOf(entry_point);
  RaiseDueFaults();
  if (traits.sticky == EntryTraits::Sticky::kCurrent) {
    DeviceOrdinal device;
    if (CurrentDevice(&device) == abi::kSuccess && contexts.sticky(device) != abi::kSuccess) {
      return contexts.sticky(device);
    }
  } else if (traits.sticky == EntryTraits::Sticky::kAny && config.quirks.context_free_calls_see_sticky) {
    if (const abi::Result sticky = contexts.AnySticky(); sticky != abi::kSuccess) return sticky;
  }
  if (traits.vmm && config.quirks.vmm_needs_context && contexts.references() == 0) return abi::kInvalidContext;
  return abi::kSuccess;
}

void DriverState::Charge(EntryPoint entry_point) {
  const VirtualTime cost = FromMicroseconds(config.costs.Microseconds(entry_point, touched_handles_, touched_bytes_)) +
                           faults.DelayOf(entry_point);
  Touches(0, Bytes());
  counters.modelled[static_cast<size_t>(entry_point)] += cost;
  if (config.calls_advance_clock && cost.count() > 0) timeline.Advance(cost);
}

// --- Memory ---------------------------------------------------------------------------------------------------------

Allocation* DriverState::CreateAllocation(DeviceOrdinal device, Bytes size, const abi::AllocationProp& prop,
                                          bool classic) {
  if (!faults.AllowsCreate(size)) return nullptr;
  const std::optional<uint64_t> offset = memory(device).Commit(size);
  if (!offset) return nullptr;
  faults.NoteCreated(size);
  return allocations.Add(device, size, *offset, prop, classic);
}

void DriverState::FreeIfUnused(Allocation& allocation) {
  if (!allocation.dead()) return;
  memory(allocation.device).Free(allocation.offset, allocation.size);
  timeline.ForgetAllocation(allocation.id);
  allocations.Erase(allocation);
}

bool DriverState::CreateClassic(DeviceOrdinal device, Bytes size, DeviceAddress* address) {
  const Bytes pages = RoundUp(size, kHostPage);
  const std::optional<DeviceAddress> begin =
      addresses.Take(pages, kHostPage, DeviceAddress(), AddressSpace::Use::kClassic);
  if (!begin) return false;
  Allocation* allocation = CreateAllocation(device, RoundUp(size, kClassicUnit), abi::AllocationProp{}, true);
  if (allocation == nullptr) {
    addresses.GiveBack(*begin);
    return false;
  }
  AccessMask access;
  access.Set(device, abi::kAccessReadWrite);
  if (real() && !memory(device).file()->ShowPages({*begin, pages}, allocation->offset, HostProtection(access))) {
    FreeIfUnused(*allocation);
    addresses.GiveBack(*begin);
    return false;
  }
  mappings.Add({*begin, size}, *allocation, access);
  *address = *begin;
  return true;
}

void DriverState::FreeClassic(DeviceAddress begin) {
  NoticeUnmap(mappings.Find(begin)->range);
  const Mapping mapping = mappings.Erase(begin);
  addresses.GiveBack(begin);
  FreeIfUnused(*mapping.allocation);
}

bool DriverState::Map(AddressRange range, Allocation& allocation) {
  if (real() && !memory(allocation.device).file()->ShowPages(range, allocation.offset, PROT_NONE)) return false;
  mappings.Add(range, allocation, AccessMask());
  return true;
}

bool DriverState::Unmap(AddressRange range) {
  if (real() && !HidePages(range)) return false;
  NoticeUnmap(range);
  std::vector<DeviceAddress> begins;
  mappings.ForEachIn(range, [&](const Mapping& mapping) { begins.push_back(mapping.range.begin); });
  for (const DeviceAddress begin : begins) FreeIfUnused(*mappings.Erase(begin).allocation);
  return true;
}

void DriverState::NoticeUnmap(AddressRange range) {
  for (const PendingWork& pending : timeline.PendingOn(range)) {
    Report(Hazard::Kind::kUnmapUnderWork, absl::StrCat(ToString(range), " was unmapped at ", timeline.now().count(),
                                                       " ns under ", pending.ToString()));
    // Whatever runs on the range from now on faults; the device that owns the memory stands for the one that runs it.
    mappings.ForEachIn(pending.range, [&](const Mapping& mapping) {
      const DeviceOrdinal owner = mapping.allocation->device;
      if (contexts.IsLive(owner)) contexts.MakeSticky(owner, abi::kIllegalAddress);
    });
  }
  timeline.ForgetRange(range);
}

int DriverState::HostProtection(const AccessMask& access) const {
  if (config.strict_host_fault) return PROT_NONE;
  return (access.any_reads() ? PROT_READ : 0) | (access.any_writes() ? PROT_WRITE : 0);
}

bool DriverState::Protect(AddressRange range, absl::Span<const AccessMask> access) {
  // Neighbours with the same protection are changed together: one system call instead of thousands.
  std::optional<AddressRange> run;
  int protection = PROT_NONE;
  size_t i = 0;
  bool done = true;
  mappings.ForEachIn(range, [&](const Mapping& mapping) {
    const int wanted = HostProtection(access[i++]);
    if (run && wanted == protection && run->end() == mapping.range.begin) {
      run->size += mapping.range.size;
      return;
    }
    if (run) done = done && ProtectPages(*run, protection);
    run = mapping.range;
    protection = wanted;
  });
  if (run) done = done && ProtectPages(*run, protection);
  return done;
}

bool DriverState::SetAccess(AddressRange range, absl::Span<const abi::AccessDesc> descs) {
  const auto with_descs = [&](AccessMask access) {
    for (const abi::AccessDesc& desc : descs) access.Set(DeviceOrdinal(desc.location.id), desc.flags);
    return access;
  };
  if (real()) {
    std::vector<AccessMask> before, after;
    mappings.ForEachIn(range, [&](const Mapping& mapping) {
      before.push_back(mapping.access);
      after.push_back(with_descs(mapping.access));
    });
    if (!Protect(range, after)) {
      (void)Protect(range, before);
      return false;
    }
  }
  mappings.ForEachIn(range, [&](Mapping& mapping) { mapping.access = with_descs(mapping.access); });
  return true;
}

bool DriverState::IsReserved(AddressRange range, bool several) const {
  std::optional<AddressRange> reservation = addresses.FindReservation(range.begin);
  while (several && reservation && reservation->end() < range.end()) {
    reservation = addresses.FindReservation(reservation->end());
  }
  return reservation && reservation->end() >= range.end();
}

// --- Faults ---------------------------------------------------------------------------------------------------------

void DriverState::Report(Hazard::Kind kind, std::string description) {
  ++hazard_count_;
  if (hazards_.size() < kHazardsKept) hazards_.push_back({kind, std::move(description)});
}

void DriverState::ClearHazards() {
  hazards_.clear();
  hazard_count_ = 0;
}

void DriverState::FaultAt(VirtualTime when, DeviceOrdinal device) {
  due_faults_.push_back({when, device});
  RaiseDueFaults();
}

void DriverState::RaiseDueFaults() {
  if (due_faults_.empty()) return;
  const auto due = std::partition(due_faults_.begin(), due_faults_.end(),
                                  [&](const DueFault& fault) { return fault.when > timeline.now(); });
  for (auto it = due; it != due_faults_.end(); ++it) contexts.MakeSticky(it->device, abi::kIllegalAddress);
  due_faults_.erase(due, due_faults_.end());
}

abi::Result DriverState::AfterWait(DeviceOrdinal device) {
  memory(device).Settle();
  RaiseDueFaults();
  return contexts.sticky(device);
}

void DriverState::ResetStickyError() {
  contexts.ResetSticky();
  due_faults_.clear();
}

// --- Observation ----------------------------------------------------------------------------------------------------

Ledger DriverState::MakeLedger() const {
  Ledger ledger;
  ledger.reservations = addresses.reservations();
  ledger.mappings = mappings.count();
  ledger.handles = allocations.handle_references();
  ledger.allocations = allocations.handle_count();
  ledger.classic_allocations = allocations.classic_count();
  ledger.contexts = contexts.references();
  ledger.streams = timeline.stream_count();
  ledger.events = timeline.event_count();
  for (const PhysicalMemory& memory : memories) ledger.physical_bytes += memory.committed();
  ledger.address_bytes = addresses.reserved_bytes();
  return ledger;
}

absl::Status DriverState::CheckInvariants() const {
  for (const absl::Status& status :
       {addresses.CheckInvariants(), allocations.CheckInvariants(), mappings.CheckInvariants(),
        contexts.CheckInvariants(), timeline.CheckInvariants()}) {
    if (!status.ok()) return status;
  }
  for (const PhysicalMemory& memory : memories) {
    if (absl::Status status = memory.CheckInvariants(); !status.ok()) return status;
  }
  // The tables against each other.
  std::vector<Bytes> committed(memories.size());
  uint64_t mapping_references = 0;
  allocations.ForEach([&](const Allocation& allocation) {
    committed[static_cast<size_t>(allocation.device.value())] += allocation.size;
    mapping_references += allocation.mappings;
  });
  for (size_t i = 0; i < memories.size(); ++i) {
    if (committed[i] == memories[i].committed()) continue;
    return absl::InternalError(absl::StrCat("device ", i, ": allocations of ", ToString(committed[i]), ", committed ",
                                            ToString(memories[i].committed())));
  }
  uint64_t mapped = 0;
  absl::Status status;
  mappings.ForEach([&](const Mapping& mapping) {
    ++mapped;
    if (mapping.allocation->classic || IsReserved(mapping.range, false)) return;
    status = absl::InternalError(absl::StrCat("mapping ", ToString(mapping.range), " lies in no reservation"));
  });
  if (!status.ok()) return status;
  if (mapped == mapping_references) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(mapped, " mappings, but allocations count ", mapping_references));
}

}  // namespace expanse::sim

// What the arguments of stream-ordered calls mean.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/sim/entry_points.h"

namespace expanse::sim {

abi::Result ResolveStream(DriverState& state, abi::Stream stream, ResolvedStream* resolved) {
  const abi::Context current = state.thread().current();
  DeviceOrdinal device;
  const abi::Result context = state.CurrentDevice(&device);
  const std::optional<StreamId> id =
      state.timeline.FindStream(stream, context == abi::kSuccess ? current : nullptr, std::this_thread::get_id());
  if (!id) {
    // Values 0 to 2 are the default streams, which only lack a context.
    return reinterpret_cast<uintptr_t>(stream) <= 2 ? context : abi::kInvalidHandle;
  }
  resolved->id = *id;
  resolved->info = state.timeline.Info(*id);
  return state.contexts.sticky(resolved->info.device);
}

ResolvedRange ResolveRange(DriverState& state, AddressRange range, bool writes, DeviceOrdinal device) {
  ResolvedRange resolved;
  DeviceAddress covered = range.begin;
  state.mappings.ForEachIn(range, [&](const Mapping& mapping) {
    const DeviceAddress begin = std::max(mapping.range.begin, range.begin);
    const DeviceAddress end = std::min(mapping.range.end(), range.end());
    const int access = mapping.access.Get(device);
    if (begin != covered || access == abi::kAccessNone || (writes && access != abi::kAccessReadWrite)) {
      resolved.accessible = false;
    }
    covered = end;
    resolved.extents.push_back({mapping.allocation->id, begin - mapping.range.begin, end - begin});
  });
  if (covered != range.end()) resolved.accessible = false;
  return resolved;
}

void ReportRaces(DriverState& state, const QueuedWork& queued, absl::Span<const WorkAccess> accesses) {
  for (const Race& race : queued.races) {
    std::string description = race.ToString();
    for (const WorkAccess& access : accesses) {
      state.mappings.ForEachIn(access.range, [&](const Mapping& mapping) {
        if (mapping.allocation->id != race.bytes.allocation) return;
        const AddressRange bytes{mapping.range.begin + race.bytes.offset, race.bytes.size};
        if (access.range.Contains(bytes)) absl::StrAppend(&description, "; at ", ToString(bytes));
      });
    }
    state.Report(Hazard::Kind::kRace, std::move(description));
  }
}

}  // namespace expanse::sim

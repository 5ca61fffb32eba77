// Copies and fills.
//
// They are queued work to the timeline, but the bytes move at the call. That is right unless there is a hazard: work
// that is ordered is enqueued in that order, so each copy reads what the copies before it have written. Kernels, which
// the simulator only knows as Launch(), write nothing.

#include <algorithm>
#include <cstring>
#include <vector>

#include "vmm/sim/entry_points.h"

namespace expanse::sim {
namespace {

// One side of a copy: device bytes, or host bytes if `host` is not null.
struct Side {
  AddressRange range;
  void* host = nullptr;
};

Side DeviceSide(abi::DevicePtr address, size_t size) { return {{DeviceAddress(address), Bytes(size)}, nullptr}; }
Side HostSide(const void* host, size_t size) {
  return {{DeviceAddress::FromPointer(host), Bytes(size)}, const_cast<void*>(host)};
}

// Whether the simulator handed the address out; any other is the host's.
bool IsDeviceAddress(const DriverState& state, abi::DevicePtr address) {
  return state.addresses.FindReservation(DeviceAddress(address)) ||
         state.mappings.Find(DeviceAddress(address)) != nullptr;
}

Side EitherSide(const DriverState& state, abi::DevicePtr address, size_t size) {
  return IsDeviceAddress(state, address) ? DeviceSide(address, size) : HostSide(DeviceAddress(address).ptr(), size);
}

// Calls move(file, offset in the file, offset in the range, bytes) for each mapped piece of a range, while it succeeds.
template <typename Move>
bool ForEachPiece(DriverState& state, AddressRange range, Move&& move) {
  bool ok = true;
  state.mappings.ForEachIn(range, [&](const Mapping& mapping) {
    const DeviceAddress begin = std::max(mapping.range.begin, range.begin);
    const DeviceAddress end = std::min(mapping.range.end(), range.end());
    ok = ok && move(*state.memory(mapping.allocation->device).file(),
                    mapping.allocation->offset + (begin - mapping.range.begin).count(), (begin - range.begin).count(),
                    end - begin);
  });
  return ok;
}

bool ReadDevice(DriverState& state, AddressRange range, char* to) {
  return ForEachPiece(state, range, [&](SparseFile& file, uint64_t offset, uint64_t at, Bytes size) {
    return file.Read(offset, to + at, size);
  });
}

bool WriteDevice(DriverState& state, AddressRange range, const char* from) {
  return ForEachPiece(state, range, [&](SparseFile& file, uint64_t offset, uint64_t at, Bytes size) {
    return file.Write(offset, from + at, size);
  });
}

// Moves the bytes. Ranges are mapped; a host address may still be bad.
bool MoveBytes(DriverState& state, const Side& to, const Side& from) {
  const size_t size = to.range.size.count();
  if (to.host != nullptr && from.host != nullptr) {
    std::memmove(to.host, from.host, size);
    return true;
  }
  if (to.host != nullptr) return ReadDevice(state, from.range, static_cast<char*>(to.host));
  if (from.host != nullptr) return WriteDevice(state, to.range, static_cast<const char*>(from.host));
  std::vector<char> buffer(std::min<size_t>(size, MiB(1).count()));
  for (size_t done = 0; done < size; done += buffer.size()) {
    const Bytes part(std::min(buffer.size(), size - done));
    if (!ReadDevice(state, {from.range.begin + Bytes(done), part}, buffer.data()) ||
        !WriteDevice(state, {to.range.begin + Bytes(done), part}, buffer.data())) {
      return false;
    }
  }
  return true;
}

// How long work of that entry point occupies its stream: the part of its cost that grows with the bytes. What is left
// of the cost is the call's own.
VirtualTime DurationOf(const DriverState& state, EntryPoint entry_point, size_t size) {
  const double mib = static_cast<double>(size) / static_cast<double>(MiB(1).count());
  const double us = state.config.costs.costs[static_cast<size_t>(entry_point)].per_mib * mib;
  return VirtualTime(static_cast<VirtualTime::rep>(us * 1000));
}

// Adds one side to what the work touches; false if the stream's device may not use all of it.
bool AddAccess(DriverState& state, const Side& side, bool writes, DeviceOrdinal device,
               std::vector<WorkAccess>& accesses) {
  if (side.host != nullptr) return true;
  // One copy stays within one reservation, or one classic allocation, which is one mapping.
  const Mapping* first = state.mappings.Find(side.range.begin);
  if (first == nullptr) return false;
  if (!first->allocation->classic && !state.IsReserved(side.range, false)) return false;
  ResolvedRange resolved = ResolveRange(state, side.range, writes, device);
  if (!resolved.accessible) return false;
  accesses.push_back({side.range, writes, std::move(resolved.extents)});
  return true;
}

void QueueCopy(DriverState& state, EntryPoint entry_point, const char* what, const ResolvedStream& stream, size_t size,
               const std::vector<WorkAccess>& accesses) {
  const QueuedWork queued = state.timeline.Enqueue(stream.id, DurationOf(state, entry_point, size), accesses, what);
  ReportRaces(state, queued, accesses);
}

abi::Result Copy(DriverState& state, EntryPoint entry_point, const char* what, const Side& to, const Side& from,
                 abi::Stream stream) {
  DeviceOrdinal current;
  if (const abi::Result result = state.CurrentDevice(&current); result != abi::kSuccess) return result;
  ResolvedStream resolved;
  if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
  const size_t size = to.range.size.count();
  if (size == 0) return abi::kSuccess;
  std::vector<WorkAccess> accesses;
  for (const Side* side : {&to, &from}) {
    if (side->range.begin.is_null() || size > UINT64_MAX - side->range.begin.value()) return abi::kInvalidValue;
    if (!AddAccess(state, *side, side == &to, resolved.info.device, accesses)) return abi::kInvalidValue;
  }
  if (state.config.memory == MemoryMode::kReal && !MoveBytes(state, to, from)) return abi::kInvalidValue;
  QueueCopy(state, entry_point, what, resolved, size, accesses);
  // Host memory is pageable here: a copy to it returns once the bytes are there, one from it once they are staged.
  if (to.host == nullptr) return abi::kSuccess;
  state.timeline.SynchronizeStream(resolved.id);
  return state.AfterWait(resolved.info.device);
}

abi::Result MemcpyAsync(abi::DevicePtr to, abi::DevicePtr from, size_t size, abi::Stream stream) {
  return Enter(EntryPoint::memcpy_async, [&](DriverState& state) {
    return Copy(state, EntryPoint::memcpy_async, "cuMemcpyAsync", EitherSide(state, to, size),
                EitherSide(state, from, size), stream);
  });
}

abi::Result MemcpyHtoDAsync(abi::DevicePtr to, const void* from, size_t size, abi::Stream stream) {
  return Enter(EntryPoint::memcpy_htod_async, [&](DriverState& state) {
    return Copy(state, EntryPoint::memcpy_htod_async, "cuMemcpyHtoDAsync", DeviceSide(to, size), HostSide(from, size),
                stream);
  });
}

abi::Result MemcpyDtoHAsync(void* to, abi::DevicePtr from, size_t size, abi::Stream stream) {
  return Enter(EntryPoint::memcpy_dtoh_async, [&](DriverState& state) {
    return Copy(state, EntryPoint::memcpy_dtoh_async, "cuMemcpyDtoHAsync", HostSide(to, size), DeviceSide(from, size),
                stream);
  });
}

abi::Result MemcpyDtoDAsync(abi::DevicePtr to, abi::DevicePtr from, size_t size, abi::Stream stream) {
  return Enter(EntryPoint::memcpy_dtod_async, [&](DriverState& state) {
    return Copy(state, EntryPoint::memcpy_dtod_async, "cuMemcpyDtoDAsync", DeviceSide(to, size), DeviceSide(from, size),
                stream);
  });
}

abi::Result MemsetD8Async(abi::DevicePtr to, unsigned char value, size_t size, abi::Stream stream) {
  return Enter(EntryPoint::memset_d8_async, [&](DriverState& state) {
    DeviceOrdinal current;
    if (const abi::Result result = state.CurrentDevice(&current); result != abi::kSuccess) return result;
    ResolvedStream resolved;
    if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
    if (size == 0) return abi::kSuccess;
    if (to == 0 || size > UINT64_MAX - to) return abi::kInvalidValue;
    const Side side = DeviceSide(to, size);
    std::vector<WorkAccess> accesses;
    if (!AddAccess(state, side, true, resolved.info.device, accesses)) return abi::kInvalidValue;
    const auto fill = [value](SparseFile& file, uint64_t offset, uint64_t, Bytes bytes) {
      return file.Fill(offset, value, bytes);
    };
    if (state.config.memory == MemoryMode::kReal && !ForEachPiece(state, side.range, fill)) {
      return abi::kOutOfMemory;
    }
    QueueCopy(state, EntryPoint::memset_d8_async, "cuMemsetD8Async", resolved, size, accesses);
    return abi::kSuccess;
  });
}

}  // namespace

void FillCopyEntryPoints(Driver& driver) {
  driver.memcpy_async = MemcpyAsync;
  driver.memcpy_htod_async = MemcpyHtoDAsync;
  driver.memcpy_dtoh_async = MemcpyDtoHAsync;
  driver.memcpy_dtod_async = MemcpyDtoDAsync;
  driver.memset_d8_async = MemsetD8Async;
}

}  // namespace expanse::sim

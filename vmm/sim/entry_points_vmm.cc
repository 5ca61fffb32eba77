// Virtual memory management: reservations, physical memory, mappings, access.
//
// Every function checks in the order that docs/simulator.md gives: null pointers, sizes and flags, alignment, device
// and location, handle and range, state, resources.

#include "vmm/sim/entry_points.h"

namespace expanse::sim {
namespace {

// No device has addresses of more bits: sizes above are nonsense rather than too much.
constexpr Bytes kLargestSize(uint64_t{1} << 56);

bool IsPowerOfTwo(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

// A range whose end would wrap lies nowhere.
bool IsSane(abi::DevicePtr address, size_t size) { return address != 0 && size != 0 && size <= UINT64_MAX - address; }

AddressRange RangeOf(abi::DevicePtr address, size_t size) { return {DeviceAddress(address), Bytes(size)}; }

abi::Result GetAllocationGranularity(size_t* granularity, const abi::AllocationProp* prop, int option) {
  return Enter(EntryPoint::mem_get_allocation_granularity, [&](DriverState& state) {
    if (granularity == nullptr || prop == nullptr) return abi::kInvalidValue;
    if (option != abi::kGranularityMinimum && option != abi::kGranularityRecommended) return abi::kInvalidValue;
    // The real driver does not look at the device here.
    const int id = prop->location.type == abi::kLocationDevice ? prop->location.id : 0;
    *granularity = state.device(DeviceOrdinal(state.IsDevice(id) ? id : 0)).granularity.count();
    return abi::kSuccess;
  });
}

abi::Result AddressReserve(abi::DevicePtr* address, size_t size, size_t alignment, abi::DevicePtr hint,
                           abi::u64 flags) {
  return Enter(EntryPoint::mem_address_reserve, [&](DriverState& state) {
    if (address == nullptr || size == 0 || flags != 0 || Bytes(size) > kLargestSize) return abi::kInvalidValue;
    if (!IsMultipleOf(Bytes(size), kHostPage) || !IsMultipleOf(Bytes(hint), kHostPage)) return abi::kInvalidValue;
    if (alignment != 0 && !IsPowerOfTwo(alignment)) return abi::kInvalidValue;
    const DeviceAddress wanted(state.config.quirks.honour_address_hints ? hint : 0);
    const std::optional<DeviceAddress> begin = state.addresses.Take(
        Bytes(size), std::max(Bytes(alignment), state.granularity), wanted, AddressSpace::Use::kReservation);
    if (!begin) return abi::kOutOfMemory;
    state.Touches(0, Bytes(size));
    *address = begin->value();
    return abi::kSuccess;
  });
}

abi::Result AddressFree(abi::DevicePtr address, size_t size) {
  return Enter(EntryPoint::mem_address_free, [&](DriverState& state) {
    if (!IsSane(address, size)) return abi::kInvalidValue;
    const AddressRange range = RangeOf(address, size);
    if (state.addresses.FindReservation(range.begin) != range) return abi::kInvalidValue;
    if (state.mappings.AnyIn(range)) {
      if (!state.config.quirks.address_free_live) return abi::kInvalidValue;
      if (!state.Unmap(range)) return abi::kOutOfMemory;
    }
    state.addresses.GiveBack(range.begin);
    state.Touches(0, range.size);
    return abi::kSuccess;
  });
}

// Whether memory of this kind can be made at all.
abi::Result CheckKind(const DriverState& state, const abi::AllocationProp& prop) {
  constexpr int kHandleTypes = abi::kHandlePosixFd | abi::kHandleWin32 | abi::kHandleWin32Kmt | abi::kHandleFabric;
  const int types = prop.requested_handle_types;
  if (prop.type != abi::kAllocationPinned || (types & ~kHandleTypes) != 0) return abi::kInvalidValue;
  switch (prop.location.type) {
    case abi::kLocationDevice:
      if (!state.IsDevice(prop.location.id)) return abi::kInvalidDevice;
      break;
    case abi::kLocationHost:
    case abi::kLocationHostNuma:
      // Host memory with handle types is a misuse; without, the simulated devices' attributes say it is not there.
      return prop.location.type == abi::kLocationHost && types != 0 ? abi::kInvalidValue : abi::kNotSupported;
    default:
      return abi::kInvalidValue;
  }
  if ((types & (abi::kHandleWin32 | abi::kHandleWin32Kmt)) != 0) return abi::kNotSupported;
  if ((types & abi::kHandleFabric) != 0) return abi::kNotPermitted;  // There is no IMEX channel.
  return abi::kSuccess;
}

int AttributeOf(const DeviceConfig& device, int attribute) {
  const auto it = device.attributes.find(attribute);
  return it == device.attributes.end() ? 0 : it->second;
}

abi::Result Create(abi::MemHandle* handle, size_t size, const abi::AllocationProp* prop, abi::u64 flags) {
  return Enter(EntryPoint::mem_create, [&](DriverState& state) {
    if (handle == nullptr || prop == nullptr || size == 0 || flags != 0) return abi::kInvalidValue;
    const int id = prop->location.type == abi::kLocationDevice ? prop->location.id : 0;
    if (state.IsDevice(id) && !IsMultipleOf(Bytes(size), state.device(DeviceOrdinal(id)).granularity)) {
      return abi::kInvalidValue;
    }
    if (const abi::Result result = CheckKind(state, *prop); result != abi::kSuccess) return result;
    const DeviceOrdinal device(id);
    // Compression and RDMA are requests: what comes back is what the device can do.
    abi::AllocationProp granted = *prop;
    if (AttributeOf(state.device(device), abi::kAttributeGenericCompression) == 0) {
      granted.alloc_flags.compression_type = 0;
    }
    if (AttributeOf(state.device(device), abi::kAttributeRdmaWithVmm) == 0) {
      granted.alloc_flags.gpu_direct_rdma_capable = 0;
    }
    if (state.allocations.handle_count() >= state.config.max_handles) return abi::kOutOfMemory;
    const Allocation* allocation = state.CreateAllocation(device, Bytes(size), granted, false);
    if (allocation == nullptr) return abi::kOutOfMemory;
    ++state.counters.handles_created;
    state.Touches(1, Bytes(size));
    *handle = AllocationTable::HandleOf(*allocation);
    return abi::kSuccess;
  });
}

abi::Result Release(abi::MemHandle handle) {
  return Enter(EntryPoint::mem_release, [&](DriverState& state) {
    Allocation* allocation = state.allocations.Find(handle);
    if (allocation == nullptr) {
      // Undefined by the documentation, so no program may live on this answer.
      state.Report(Hazard::Kind::kContractBreach,
                   absl::StrCat("cuMemRelease of handle ", handle, ", which names no memory (any more)"));
      return abi::kInvalidValue;
    }
    state.Touches(1, allocation->size);
    state.allocations.DropReference(*allocation);
    state.FreeIfUnused(*allocation);
    return abi::kSuccess;
  });
}

abi::Result Map(abi::DevicePtr address, size_t size, size_t offset, abi::MemHandle handle, abi::u64 flags) {
  return Enter(EntryPoint::mem_map, [&](DriverState& state) {
    if (!IsSane(address, size) || flags != 0) return abi::kInvalidValue;
    Allocation* allocation = state.allocations.Find(handle);
    if (allocation == nullptr) return abi::kInvalidValue;
    const Bytes unit = state.device(allocation->device).granularity;
    if (address % unit.count() != 0 || size % unit.count() != 0 || offset % unit.count() != 0) {
      return abi::kInvalidValue;
    }
    const uint64_t held = allocation->size.count();
    if (size > held || offset > held - size) return state.config.quirks.oversize_map_error;
    if (offset != 0) return state.config.quirks.offset_map_error;
    const AddressRange range = RangeOf(address, size);
    if (!state.IsReserved(range, false) || state.mappings.AnyIn(range)) return abi::kInvalidValue;
    if (state.mappings.count() >= state.config.max_mappings) return abi::kOutOfMemory;
    if (!state.Map(range, *allocation)) return abi::kOutOfMemory;
    state.Touches(1, range.size);
    return abi::kSuccess;
  });
}

abi::Result Unmap(abi::DevicePtr address, size_t size) {
  return Enter(EntryPoint::mem_unmap, [&](DriverState& state) {
    if (!IsSane(address, size)) return abi::kInvalidValue;
    const AddressRange range = RangeOf(address, size);
    const Quirks& quirks = state.config.quirks;
    if (!state.IsReserved(range, quirks.unmap_across_reservations)) return abi::kInvalidValue;
    const MappingTable::Tiling tiling = state.mappings.TilingOf(range);
    const bool partial = tiling == MappingTable::Tiling::kHoles && quirks.unmap_hole_is_partial;
    if (tiling != MappingTable::Tiling::kExact && !partial) return abi::kInvalidValue;
    uint64_t count = 0;
    state.mappings.ForEachIn(range, [&](const Mapping&) { ++count; });
    if (count > 0 && !state.Unmap(range)) return abi::kOutOfMemory;
    state.Touches(count, range.size);
    return partial ? abi::kInvalidValue : abi::kSuccess;
  });
}

abi::Result SetAccess(abi::DevicePtr address, size_t size, const abi::AccessDesc* descs, size_t count) {
  return Enter(EntryPoint::mem_set_access, [&](DriverState& state) {
    if (!IsSane(address, size) || descs == nullptr || count == 0) return abi::kInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      const int flags = descs[i].flags;
      if (flags != abi::kAccessNone && flags != abi::kAccessRead && flags != abi::kAccessReadWrite) {
        return abi::kInvalidValue;
      }
      if (descs[i].location.type != abi::kLocationDevice || !state.IsDevice(descs[i].location.id)) {
        return abi::kInvalidValue;
      }
    }
    const AddressRange range = RangeOf(address, size);
    if (!state.IsReserved(range, false)) return abi::kInvalidValue;
    switch (state.mappings.TilingOf(range)) {
      case MappingTable::Tiling::kExact:
        break;
      case MappingTable::Tiling::kHoles:
        return abi::kInvalidValue;
      case MappingTable::Tiling::kPartial:
        if (!state.config.quirks.set_access_subrange || !IsMultipleOf(Bytes(address), state.granularity) ||
            !IsMultipleOf(range.size, state.granularity) || !state.mappings.Covers(range)) {
          return abi::kInvalidValue;
        }
        break;
    }
    uint64_t touched = 0;
    bool peer = false;
    state.mappings.ForEachIn(range, [&](const Mapping& mapping) {
      ++touched;
      for (size_t i = 0; i < count; ++i) {
        peer = peer || DeviceOrdinal(descs[i].location.id) != mapping.allocation->device;
      }
    });
    if (peer) return state.config.quirks.peer_error;
    if (!state.SetAccess(range, absl::MakeConstSpan(descs, count))) return abi::kOutOfMemory;
    state.Touches(touched, range.size);
    return abi::kSuccess;
  });
}

// The mapping at an address, if cuMemMap made it.
const Mapping* FindVmmMapping(const DriverState& state, uint64_t address) {
  const Mapping* mapping = state.mappings.Find(DeviceAddress(address));
  return mapping != nullptr && !mapping->allocation->classic ? mapping : nullptr;
}

abi::Result GetAccess(abi::u64* flags, const abi::Location* location, abi::DevicePtr address) {
  return Enter(EntryPoint::mem_get_access, [&](DriverState& state) {
    if (flags == nullptr || location == nullptr || address == 0) return abi::kInvalidValue;
    if (location->type != abi::kLocationDevice) return abi::kInvalidValue;
    if (!state.IsDevice(location->id)) return abi::kInvalidDevice;
    const Mapping* mapping = FindVmmMapping(state, address);
    if (mapping == nullptr) return abi::kInvalidValue;
    *flags = static_cast<abi::u64>(mapping->access.Get(DeviceOrdinal(location->id)));
    return abi::kSuccess;
  });
}

abi::Result RetainAllocationHandle(abi::MemHandle* handle, void* address) {
  return Enter(EntryPoint::mem_retain_allocation_handle, [&](DriverState& state) {
    if (handle == nullptr || address == nullptr) return abi::kInvalidValue;
    const Mapping* mapping = FindVmmMapping(state, DeviceAddress::FromPointer(address).value());
    if (mapping == nullptr) return abi::kInvalidValue;
    state.allocations.AddReference(*mapping->allocation);
    *handle = AllocationTable::HandleOf(*mapping->allocation);
    return abi::kSuccess;
  });
}

abi::Result GetAllocationProperties(abi::AllocationProp* prop, abi::MemHandle handle) {
  return Enter(EntryPoint::mem_get_allocation_properties, [&](DriverState& state) {
    if (prop == nullptr) return abi::kInvalidValue;
    const Allocation* allocation = state.allocations.Find(handle);
    if (allocation == nullptr) return abi::kInvalidValue;
    *prop = allocation->prop;
    return abi::kSuccess;
  });
}

}  // namespace

void FillVirtualMemoryEntryPoints(Driver& driver) {
  driver.mem_get_allocation_granularity = GetAllocationGranularity;
  driver.mem_address_reserve = AddressReserve;
  driver.mem_address_free = AddressFree;
  driver.mem_create = Create;
  driver.mem_release = Release;
  driver.mem_map = Map;
  driver.mem_unmap = Unmap;
  driver.mem_set_access = SetAccess;
  driver.mem_get_access = GetAccess;
  driver.mem_retain_allocation_handle = RetainAllocationHandle;
  driver.mem_get_allocation_properties = GetAllocationProperties;
}

}  // namespace expanse::sim

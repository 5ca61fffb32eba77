// Classic allocation and what is known about addresses.

#include <cstring>

#include "vmm/sim/entry_points.h"

namespace expanse::sim {
namespace {

abi::Result MemGetInfo(size_t* free_bytes, size_t* total) {
  return Enter(EntryPoint::mem_get_info, [&](DriverState& state) {
    DeviceOrdinal device;
    if (const abi::Result result = state.CurrentDevice(&device); result != abi::kSuccess) return result;
    if (free_bytes == nullptr || total == nullptr) return abi::kInvalidValue;
    *free_bytes = state.memory(device).available().count();
    *total = state.memory(device).total().count();
    return abi::kSuccess;
  });
}

abi::Result MemAlloc(abi::DevicePtr* address, size_t size) {
  return Enter(EntryPoint::mem_alloc, [&](DriverState& state) {
    DeviceOrdinal device;
    if (const abi::Result result = state.CurrentDevice(&device); result != abi::kSuccess) return result;
    if (address == nullptr || size == 0) return abi::kInvalidValue;
    // Also keeps sizes out of the range where rounding them up would wrap.
    if (Bytes(size) > state.memory(device).total()) return abi::kOutOfMemory;
    DeviceAddress begin;
    if (!state.CreateClassic(device, Bytes(size), &begin)) return abi::kOutOfMemory;
    state.Touches(1, Bytes(size));
    *address = begin.value();
    return abi::kSuccess;
  });
}

abi::Result MemFree(abi::DevicePtr address) {
  return Enter(EntryPoint::mem_free, [&](DriverState& state) {
    if (address == 0) return abi::kSuccess;
    DeviceOrdinal current;
    if (const abi::Result result = state.CurrentDevice(&current); result != abi::kSuccess) return result;
    const DeviceAddress begin(address);
    const Mapping* mapping = state.mappings.Find(begin);
    if (mapping == nullptr || !mapping->allocation->classic || mapping->range.begin != begin) {
      return abi::kInvalidValue;
    }
    // Implicitly waits for the device, on which any queued work may be using the memory.
    const DeviceOrdinal owner = mapping->allocation->device;
    state.timeline.SynchronizeContext(state.contexts.ContextOf(owner));
    if (const abi::Result result = state.AfterWait(owner); result != abi::kSuccess) return result;
    state.Touches(1, mapping->range.size);
    state.FreeClassic(begin);
    return abi::kSuccess;
  });
}

abi::Result MemGetAddressRange(abi::DevicePtr* base, size_t* size, abi::DevicePtr address) {
  return Enter(EntryPoint::mem_get_address_range, [&](DriverState& state) {
    const Mapping* mapping = state.mappings.Find(DeviceAddress(address));
    if (mapping == nullptr) return abi::kInvalidValue;
    if (base != nullptr) *base = mapping->range.begin.value();
    if (size != nullptr) *size = mapping->range.size.count();
    return abi::kSuccess;
  });
}

// The driver takes a void* and writes as many bytes as the attribute's type has.
template <typename T>
abi::Result Answer(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return abi::kSuccess;
}

// Attributes of an address that is mapped. The widths are those of cuPointerGetAttribute's documentation: addresses and
// sizes 8 bytes, a handle type mask 8, the rest 4.
abi::Result AnswerMapped(const DriverState& state, void* out, int attribute, const Mapping& mapping) {
  const Allocation& allocation = *mapping.allocation;
  switch (attribute) {
    case abi::kPointerMemoryType:
      return Answer(out, 2);  // CU_MEMORYTYPE_DEVICE
    case abi::kPointerDeviceOrdinal:
      return Answer(out, allocation.device.value());
    case abi::kPointerIsLegacyIpcCapable:
      return Answer(out, 0);
    case abi::kPointerAllowedHandleTypes:
      return Answer(out, static_cast<uint64_t>(allocation.prop.requested_handle_types));
    case abi::kPointerIsRdmaCapable:
      return Answer(out, static_cast<int>(allocation.prop.alloc_flags.gpu_direct_rdma_capable));
    case abi::kPointerAccessFlags: {
      DeviceOrdinal device = allocation.device;
      if (state.CurrentDevice(&device) != abi::kSuccess) device = allocation.device;
      return Answer(out, mapping.access.Get(device));
    }
    case abi::kPointerMappingBase:
      return Answer(out, mapping.range.begin.value());
    case abi::kPointerMappingSize:
      return Answer(out, mapping.range.size.count());
    default:
      return abi::kInvalidValue;
  }
}

abi::Result PointerGetAttribute(void* out, int attribute, abi::DevicePtr address) {
  return Enter(EntryPoint::pointer_get_attribute, [&](DriverState& state) {
    if (out == nullptr) return abi::kInvalidValue;
    const DeviceAddress at(address);
    const Mapping* mapping = state.mappings.Find(at);
    std::optional<AddressRange> range = state.addresses.FindReservation(at);
    if (!range && mapping != nullptr) range = mapping->range;  // A classic allocation is its own range.
    if (!range) return abi::kInvalidValue;
    switch (attribute) {
      case abi::kPointerRangeStart:
        return Answer(out, range->begin.value());
      case abi::kPointerRangeSize:
        return Answer(out, range->size.count());
      case abi::kPointerMapped:
        return Answer(out, mapping != nullptr ? 1 : 0);
      default:
        return mapping != nullptr ? AnswerMapped(state, out, attribute, *mapping) : abi::kInvalidValue;
    }
  });
}

}  // namespace

void FillClassicMemoryEntryPoints(Driver& driver) {
  driver.mem_get_info = MemGetInfo;
  driver.mem_alloc = MemAlloc;
  driver.mem_free = MemFree;
}

void FillPointerEntryPoints(Driver& driver) {
  driver.mem_get_address_range = MemGetAddressRange;
  driver.pointer_get_attribute = PointerGetAttribute;
}

}  // namespace expanse::sim

// cuMemRetainAllocationHandle, cuMemGetAllocationPropertiesFromHandle, cuPointerGetAttribute, cuMemGetAddressRange.

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;

void* Pointer(abi::DevicePtr address) { return DeviceAddress(address).ptr(); }

// An address that was reserved once and is no longer.
abi::DevicePtr UnknownAddress(World& w) {
  const abi::DevicePtr gap = w.Reserve(w.g);
  w.Need(w.d.mem_address_free(gap, w.g), "cuMemAddressFree");
  return gap;
}

// Retains the handle at an address, checks which it is, and releases it.
int Retain(World& w, abi::DevicePtr address, abi::MemHandle expected) {
  abi::MemHandle handle = 0;
  const int result = w.d.mem_retain_allocation_handle(&handle, Pointer(address));
  if (result != abi::kSuccess) return result;
  w.NeedThat(handle == expected, "the handle that was mapped");
  w.Need(w.d.mem_release(handle), "cuMemRelease of what was retained");
  return result;
}

void AddRetainRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_retain_allocation_handle, grade, std::move(codes), std::move(call)});
  };
  add("retain.start_of_a_mapping", G::kDocumented, {0}, [](World& w) { return Retain(w, w.At(0), w.one); });
  add("retain.inside_a_mapping", G::kDocumented, {0}, [](World& w) { return Retain(w, w.At(2) + 4097, w.two); });
  add("retain.after_release", G::kReliedUpon, {0}, [](World& w) {
    const abi::MemHandle handle = w.Create(w.g);
    w.Need(w.Map(4, handle), "cuMemMap");
    w.Need(w.d.mem_release(handle), "cuMemRelease");
    const int result = Retain(w, w.At(4), handle);
    w.Need(w.d.mem_unmap(w.At(4), w.g), "cuMemUnmap");
    return result;
  });
  add("retain.keeps_memory_alive", G::kDocumented, {0}, [](World& w) {
    w.Need(w.Map(4, w.spare), "cuMemMap");
    abi::MemHandle handle = 0;
    const int result = w.d.mem_retain_allocation_handle(&handle, Pointer(w.At(4)));
    w.Need(w.d.mem_unmap(w.At(4), w.g), "cuMemUnmap");
    w.Need(w.d.mem_release(w.spare), "cuMemRelease of the first reference");
    w.Need(w.Map(5, handle), "cuMemMap by the second");
    w.Need(w.d.mem_unmap(w.At(5), w.g), "cuMemUnmap");
    return result;  // the second reference is the spare handle now
  });
  add("retain.output_null", G::kTested, {1},
      [](World& w) { return w.d.mem_retain_allocation_handle(nullptr, Pointer(w.At(0))); });
  add("retain.address_null", G::kTested, {1}, [](World& w) { return Retain(w, 0, 0); });
  add("retain.only_reserved", G::kTested, {1}, [](World& w) { return Retain(w, w.At(5), 0); });
  add("retain.unmapped_again", G::kTested, {1}, [](World& w) {
    w.Need(w.d.mem_unmap(w.At(0), w.g), "cuMemUnmap");
    w.one_mapped = false;
    return Retain(w, w.At(0), w.one);
  });
  add("retain.classic_memory", G::kAssumed, {1}, [](World& w) {
    abi::DevicePtr address = 0;
    w.Need(w.d.mem_alloc(&address, w.g), "cuMemAlloc");
    const int result = Retain(w, address, 0);
    w.Need(w.d.mem_free(address), "cuMemFree");
    return result;
  });
}

void AddPropertiesRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_get_allocation_properties, grade, std::move(codes), std::move(call)});
  };
  add("properties.as_created", G::kDocumented, {0}, [](World& w) {
    abi::AllocationProp prop{};
    const int result = w.d.mem_get_allocation_properties(&prop, w.one);
    w.NeedThat(prop.type == abi::kAllocationPinned, "pinned memory");
    w.NeedThat(prop.location.type == abi::kLocationDevice && prop.location.id == 0, "device 0");
    w.NeedThat(prop.requested_handle_types == 0, "no handle types");
    return result;
  });
  add("properties.handle_types", G::kDocumented, {0}, [](World& w) {
    abi::AllocationProp prop = w.Prop();
    prop.requested_handle_types = abi::kHandlePosixFd;
    abi::MemHandle handle = 0;
    w.Need(w.d.mem_create(&handle, w.g, &prop, 0), "cuMemCreate");
    prop = {};
    const int result = w.d.mem_get_allocation_properties(&prop, handle);
    w.NeedThat(prop.requested_handle_types == abi::kHandlePosixFd, "the handle type that was asked for");
    w.Need(w.d.mem_release(handle), "cuMemRelease");
    return result;
  });
  // Without the attribute, compression is not granted, and that is how one finds out.
  rows.push_back(Row{
      "properties.compression_not_granted", E::mem_get_allocation_properties, G::kDocumented, {0}, [](World& w) {
        abi::AllocationProp prop = w.Prop();
        prop.alloc_flags.compression_type = 1;
        abi::MemHandle handle = 0;
        w.Need(w.d.mem_create(&handle, w.g, &prop, 0), "cuMemCreate");
        const int result = w.d.mem_get_allocation_properties(&prop, handle);
        w.NeedThat(prop.alloc_flags.compression_type == 0, "no compression");
        w.Need(w.d.mem_release(handle), "cuMemRelease");
        return result;
      }}.SimulatorOnly());
  add("properties.output_null", G::kTested, {1},
      [](World& w) { return w.d.mem_get_allocation_properties(nullptr, w.one); });
  add("properties.handle_zero", G::kTested, {1}, [](World& w) {
    abi::AllocationProp prop{};
    return w.d.mem_get_allocation_properties(&prop, 0);
  });
  add("properties.handle_released", G::kTested, {1}, [](World& w) {
    const abi::MemHandle handle = w.Create(w.g);
    w.Need(w.d.mem_release(handle), "cuMemRelease");
    abi::AllocationProp prop{};
    return w.d.mem_get_allocation_properties(&prop, handle);
  });
}

// Asks for an attribute and checks its value; attributes narrower than 64 bits leave the upper part zero.
int Attribute(World& w, int attribute, abi::DevicePtr address, uint64_t expected) {
  uint64_t value = 0;
  const int result = w.d.pointer_get_attribute(&value, attribute, address);
  if (result == abi::kSuccess) w.NeedThat(value == expected, "the attribute's value");
  return result;
}

void AddPointerRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::pointer_get_attribute, grade, std::move(codes), std::move(call)});
  };
  add("pointer.range_start_is_the_reservation", G::kTested, {0},
      [](World& w) { return Attribute(w, abi::kPointerRangeStart, w.At(2), w.base); });
  add("pointer.range_size_is_the_reservation", G::kTested, {0},
      [](World& w) { return Attribute(w, abi::kPointerRangeSize, w.At(2), 8 * w.g); });
  add("pointer.range_of_unmapped_addresses", G::kTested, {0},
      [](World& w) { return Attribute(w, abi::kPointerRangeStart, w.At(6), w.base); });
  add("pointer.mapped", G::kTested, {0}, [](World& w) { return Attribute(w, abi::kPointerMapped, w.At(2) + 1, 1); });
  add("pointer.not_mapped", G::kTested, {0}, [](World& w) { return Attribute(w, abi::kPointerMapped, w.At(6), 0); });
  add("pointer.mapping_base", G::kDocumented, {0},
      [](World& w) { return Attribute(w, abi::kPointerMappingBase, w.At(2) + 5, w.At(1)); });
  add("pointer.mapping_size", G::kDocumented, {0},
      [](World& w) { return Attribute(w, abi::kPointerMappingSize, w.At(2) + 5, 2 * w.g); });
  add("pointer.memory_type_is_device", G::kDocumented, {0},
      [](World& w) { return Attribute(w, abi::kPointerMemoryType, w.At(0), 2); });
  add("pointer.device_ordinal", G::kDocumented, {0},
      [](World& w) { return Attribute(w, abi::kPointerDeviceOrdinal, w.At(0), 0); });
  add("pointer.legacy_ipc_incapable", G::kDocumented, {0},
      [](World& w) { return Attribute(w, abi::kPointerIsLegacyIpcCapable, w.At(0), 0); });
  add("pointer.allowed_handle_types", G::kDocumented, {0},
      [](World& w) { return Attribute(w, abi::kPointerAllowedHandleTypes, w.At(0), 0); });
  add("pointer.access_flags", G::kDocumented, {0},
      [](World& w) { return Attribute(w, abi::kPointerAccessFlags, w.At(0), abi::kAccessReadWrite); });
  add("pointer.rdma_incapable_unless_asked", G::kDocumented, {0},
      [](World& w) { return Attribute(w, abi::kPointerIsRdmaCapable, w.At(0), 0); });
  add("pointer.memory_type_of_unmapped_addresses", G::kAssumed, {1},
      [](World& w) { return Attribute(w, abi::kPointerMemoryType, w.At(6), 2); });
  add("pointer.unknown_address", G::kDocumented, {1},
      [](World& w) { return Attribute(w, abi::kPointerMemoryType, UnknownAddress(w), 2); });

  auto range = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_get_address_range, grade, std::move(codes), std::move(call)});
  };
  range("address_range.is_the_mapping", G::kReliedUpon, {0}, [](World& w) {
    abi::DevicePtr begin = 0;
    size_t size = 0;
    const int result = w.d.mem_get_address_range(&begin, &size, w.At(2) + 7);
    w.NeedThat(begin == w.At(1) && size == 2 * w.g, "the mapping's range");
    return result;
  });
  range("address_range.outputs_may_be_null", G::kReliedUpon, {0}, [](World& w) {
    abi::DevicePtr begin = 0;
    size_t size = 0;
    w.Need(w.d.mem_get_address_range(&begin, nullptr, w.At(2)), "cuMemGetAddressRange without size");
    const int result = w.d.mem_get_address_range(nullptr, &size, w.At(2));
    w.NeedThat(begin == w.At(1) && size == 2 * w.g, "the mapping's range");
    return result;
  });
  range("address_range.unmapped", G::kReliedUpon, {1}, [](World& w) {
    abi::DevicePtr begin = 0;
    return w.d.mem_get_address_range(&begin, nullptr, w.At(6));
  });
}

}  // namespace

void AddQueryRows(std::vector<Row>& rows) {
  AddRetainRows(rows);
  AddPropertiesRows(rows);
  AddPointerRows(rows);
}

}  // namespace expanse::driver_spec

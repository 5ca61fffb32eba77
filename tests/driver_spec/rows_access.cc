// cuMemSetAccess, cuMemGetAccess.

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;

int SetWith(World& w, abi::Location location, int flags) {
  const abi::AccessDesc desc{location, flags};
  return w.d.mem_set_access(w.At(0), w.g, &desc, 1);
}

int Get(World& w, abi::DevicePtr address, abi::u64* flags, int device = 0) {
  const abi::Location location{abi::kLocationDevice, device};
  return w.d.mem_get_access(flags, &location, address);
}

int Flags(World& w, abi::DevicePtr address) {
  abi::u64 flags = ~abi::u64{0};
  w.Need(Get(w, address, &flags), "cuMemGetAccess");
  return static_cast<int>(flags);
}

void AddSetAccessRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_set_access, grade, std::move(codes), std::move(call)});
  };
  add("set_access.several_mappings_at_once", G::kReliedUpon, {0},
      [](World& w) { return w.SetAccess(w.At(0), 3 * w.g); });
  add("set_access.a_later_mapping_only", G::kReliedUpon, {0}, [](World& w) {
    w.Need(w.Map(3, w.spare), "cuMemMap");
    const int result = w.SetAccess(w.At(3), w.g);
    w.NeedThat(w.SameBytes(w.At(3), w.At(3)), "memory that works");
    w.Need(w.d.mem_unmap(w.At(3), w.g), "cuMemUnmap");
    return result;
  });
  add("set_access.without_context", G::kAssumed, {0},
      [](World& w) { return w.WithoutContext([&] { return w.SetAccess(w.At(0), w.g); }); });
  add("set_access.repeated", G::kDocumented, {0}, [](World& w) {
    w.Need(w.SetAccess(w.At(0), w.g), "cuMemSetAccess");
    return w.SetAccess(w.At(0), w.g);
  });
  add("set_access.read_only_and_back", G::kDocumented, {0}, [](World& w) {
    const int result = w.SetAccess(w.At(0), w.g, abi::kAccessRead);
    w.NeedThat(Flags(w, w.At(0)) == abi::kAccessRead, "read access");
    w.NeedThat(Flags(w, w.At(1)) == abi::kAccessReadWrite, "the neighbour's access as it was");
    w.Need(w.SetAccess(w.At(0), w.g), "cuMemSetAccess");
    return result;
  });
  add("set_access.revoked_and_back", G::kDocumented, {0}, [](World& w) {
    const int result = w.SetAccess(w.At(0), w.g, abi::kAccessNone);
    w.NeedThat(Flags(w, w.At(0)) == abi::kAccessNone, "no access");
    w.Need(w.SetAccess(w.At(0), w.g), "cuMemSetAccess");
    return result;
  });

  add("set_access.address_null", G::kTested, {1}, [](World& w) { return w.SetAccess(0, w.g); });
  add("set_access.descriptors_null", G::kTested, {1},
      [](World& w) { return w.d.mem_set_access(w.At(0), w.g, nullptr, 1); });
  add("set_access.count_zero", G::kTested, {1}, [](World& w) {
    const abi::AccessDesc desc{{abi::kLocationDevice, 0}, abi::kAccessReadWrite};
    return w.d.mem_set_access(w.At(0), w.g, &desc, 0);
  });
  add("set_access.size_zero", G::kTested, {1}, [](World& w) { return w.SetAccess(w.At(0), 0); });
  add("set_access.size_plus_one", G::kTested, {1}, [](World& w) { return w.SetAccess(w.At(1), 2 * w.g + 1); });
  add("set_access.size_minus_one", G::kTested, {1}, [](World& w) { return w.SetAccess(w.At(0), w.g - 1); });
  add("set_access.size_doubled", G::kTested, {1}, [](World& w) { return w.SetAccess(w.At(1), 4 * w.g); });
  add("set_access.only_reserved", G::kTested, {1}, [](World& w) { return w.SetAccess(w.At(4), w.g); });
  add("set_access.never_reserved", G::kTested, {1}, [](World& w) {
    const abi::DevicePtr gap = w.Reserve(w.g);
    w.Need(w.d.mem_address_free(gap, w.g), "cuMemAddressFree");
    return w.SetAccess(gap, w.g);
  });
  add("set_access.unmapped_again", G::kTested, {1}, [](World& w) {
    w.Need(w.d.mem_unmap(w.At(0), w.g), "cuMemUnmap");
    w.one_mapped = false;
    return w.SetAccess(w.At(0), w.g);
  });
  add("set_access.with_a_hole", G::kDocumented, {1}, [](World& w) {
    w.Need(w.Map(4, w.spare), "cuMemMap");
    const int result = w.SetAccess(w.At(1), 4 * w.g);
    w.Need(w.d.mem_unmap(w.At(4), w.g), "cuMemUnmap");
    return result;
  });
  add("set_access.flags_negative", G::kTested, {1}, [](World& w) { return SetWith(w, {abi::kLocationDevice, 0}, -1); });
  add("set_access.flags_2", G::kTested, {1}, [](World& w) { return SetWith(w, {abi::kLocationDevice, 0}, 2); });
  add("set_access.location_invalid", G::kTested, {1}, [](World& w) {
    return SetWith(w, {abi::kLocationInvalid, 0}, abi::kAccessReadWrite);
  });
  add("set_access.device_negative", G::kTested, {1, 101}, [](World& w) {
    return SetWith(w, {abi::kLocationDevice, -1}, abi::kAccessReadWrite);
  });
  add("set_access.device_too_large", G::kTested, {1, 101}, [](World& w) {
    return SetWith(w, {abi::kLocationDevice, w.devices}, abi::kAccessReadWrite);
  });
  add("set_access.host_on_device_memory", G::kTested, {1}, [](World& w) {
    return SetWith(w, {abi::kLocationHost, 0}, abi::kAccessReadWrite);
  });
  add("set_access.host_numa_on_device_memory", G::kDocumented, {1}, [](World& w) {
    return SetWith(w, {abi::kLocationHostNuma, 0}, abi::kAccessReadWrite);
  });
  add("set_access.one_bad_descriptor_of_two", G::kAssumed, {1}, [](World& w) {
    const abi::AccessDesc descs[] = {{{abi::kLocationDevice, 0}, abi::kAccessNone},
                                     {{abi::kLocationInvalid, 0}, abi::kAccessReadWrite}};
    return w.d.mem_set_access(w.At(0), w.g, descs, 2);  // all or nothing: the first is not applied either
  });
  // Whether there is a route between two real devices is not known here.
  rows.push_back(Row{"set_access.peer_without_route",
                     E::mem_set_access,
                     G::kAssumed,
                     {1, 217},
                     [](World& w) {
                       return SetWith(w, {abi::kLocationDevice, 1}, abi::kAccessReadWrite);
                     }}
                     .SimulatorOnly()
                     .TwoDevices()
                     .Quirk([](sim::Quirks& quirks) { quirks.peer_error = abi::kPeerAccessUnsupported; }, {217}));
  rows.push_back(Row{
      "set_access.half_a_mapping", E::mem_set_access, G::kAssumed, {1}, [](World& w) {
        return w.SetAccess(w.At(1), w.g);
      }}.Quirk([](sim::Quirks& quirks) { quirks.set_access_subrange = true; }, {0}));
}

void AddGetAccessRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_get_access, grade, std::move(codes), std::move(call)});
  };
  add("get_access.writes_64_bits", G::kDocumented, {0}, [](World& w) {
    abi::u64 flags = ~abi::u64{0};
    const int result = Get(w, w.At(0), &flags);
    w.NeedThat(flags == abi::kAccessReadWrite, "read-write access, all 64 bits written");
    return result;
  });
  add("get_access.interior_address", G::kTested, {0}, [](World& w) {
    abi::u64 flags = 0;
    const int result = Get(w, w.At(2) + 12345, &flags);
    w.NeedThat(flags == abi::kAccessReadWrite, "read-write access");
    return result;
  });
  add("get_access.mapped_but_never_set", G::kAssumed, {0}, [](World& w) {
    w.Need(w.Map(4, w.spare), "cuMemMap");
    abi::u64 flags = ~abi::u64{0};
    const int result = Get(w, w.At(4), &flags);
    w.NeedThat(flags == abi::kAccessNone, "no access");
    w.Need(w.d.mem_unmap(w.At(4), w.g), "cuMemUnmap");
    return result;
  });
  add("get_access.flags_null", G::kTested, {1}, [](World& w) { return Get(w, w.At(0), nullptr); });
  add("get_access.location_null", G::kTested, {1}, [](World& w) {
    abi::u64 flags = 0;
    return w.d.mem_get_access(&flags, nullptr, w.At(0));
  });
  add("get_access.address_null", G::kTested, {1}, [](World& w) {
    abi::u64 flags = 0;
    return Get(w, 0, &flags);
  });
  add("get_access.device_too_large", G::kTested, {101}, [](World& w) {
    abi::u64 flags = 0;
    return Get(w, w.At(0), &flags, w.devices);
  });
  add("get_access.only_reserved", G::kAssumed, {1}, [](World& w) {
    abi::u64 flags = 0;
    return Get(w, w.At(5), &flags);
  });
  add("get_access.unknown_address", G::kAssumed, {1}, [](World& w) {
    const abi::DevicePtr gap = w.Reserve(w.g);
    w.Need(w.d.mem_address_free(gap, w.g), "cuMemAddressFree");
    abi::u64 flags = 0;
    return Get(w, gap, &flags);
  });
}

}  // namespace

void AddAccessRows(std::vector<Row>& rows) {
  AddSetAccessRows(rows);
  AddGetAccessRows(rows);
}

}  // namespace expanse::driver_spec

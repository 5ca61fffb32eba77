// cuMemMap, cuMemUnmap.

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;

// Maps, undoing a success that was not expected of a driver under test.
int Map(World& w, abi::DevicePtr address, size_t size, size_t offset, abi::MemHandle handle, abi::u64 flags = 0) {
  const int result = w.d.mem_map(address, size, offset, handle, flags);
  if (result == abi::kSuccess) w.Need(w.d.mem_unmap(address, size), "cuMemUnmap of what was mapped");
  return result;
}

void AddMapRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_map, grade, std::move(codes), std::move(call)});
  };
  add("map.whole_handle", G::kDocumented, {0}, [](World& w) { return Map(w, w.At(4), w.g, 0, w.spare); });
  add("map.without_context", G::kAssumed, {0},
      [](World& w) { return w.WithoutContext([&] { return Map(w, w.At(4), w.g, 0, w.spare); }); });
  add("map.head_of_handle", G::kTested, {0}, [](World& w) { return Map(w, w.At(4), w.g, 0, w.two); });
  add("map.same_handle_twice", G::kTested, {0}, [](World& w) {
    w.Need(w.Map(4, w.spare), "cuMemMap");
    const int result = w.Map(6, w.spare);
    w.Need(w.SetAccess(w.At(4), w.g), "cuMemSetAccess");
    w.Need(w.SetAccess(w.At(6), w.g), "cuMemSetAccess");
    w.NeedThat(w.SameBytes(w.At(4), w.At(6)), "the same bytes at both addresses");
    w.Need(w.d.mem_unmap(w.At(4), w.g), "cuMemUnmap");
    w.Need(w.d.mem_unmap(w.At(6), w.g), "cuMemUnmap");
    return result;
  });
  add("map.bytes_survive_a_move", G::kReliedUpon, {0}, [](World& w) {
    w.Need(w.Map(4, w.spare), "cuMemMap");
    w.Need(w.SetAccess(w.At(4), w.g), "cuMemSetAccess");
    const unsigned char written[4] = {0xe5, 0x0f, 0xa2, 0x9c};
    unsigned char read[4] = {};
    w.Need(w.d.memcpy_htod_async(w.At(4), written, 4, w.stream), "cuMemcpyHtoDAsync");
    w.Need(w.d.stream_synchronize(w.stream), "cuStreamSynchronize");
    w.Need(w.d.mem_unmap(w.At(4), w.g), "cuMemUnmap");
    const int result = w.Map(7, w.spare);
    w.Need(w.SetAccess(w.At(7), w.g), "cuMemSetAccess");
    w.Need(w.d.memcpy_dtoh_async(read, w.At(7), 4, w.stream), "cuMemcpyDtoHAsync");
    w.Need(w.d.stream_synchronize(w.stream), "cuStreamSynchronize");
    const bool keeps_bytes = w.simulator == nullptr || w.simulator->config().memory == sim::MemoryMode::kReal;
    w.NeedThat(!keeps_bytes || (read[0] == 0xe5 && read[3] == 0x9c), "the bytes where the memory went");
    w.Need(w.d.mem_unmap(w.At(7), w.g), "cuMemUnmap");
    return result;
  });
  rows.push_back(Row{
      "map.memory_of_another_device", E::mem_map, G::kReliedUpon, {0}, [](World& w) {
        const abi::AllocationProp prop = w.Prop(1);
        abi::MemHandle handle = 0;
        w.Need(w.d.mem_create(&handle, w.g, &prop, 0), "cuMemCreate");
        const int result = Map(w, w.At(3), w.g, 0, handle);
        w.Need(w.d.mem_release(handle), "cuMemRelease");
        return result;
      }}.TwoDevices());

  add("map.address_null", G::kTested, {1}, [](World& w) { return Map(w, 0, w.g, 0, w.spare); });
  add("map.size_zero", G::kTested, {1}, [](World& w) { return Map(w, w.At(4), 0, 0, w.spare); });
  add("map.offset_minus_one", G::kTested, {1}, [](World& w) { return Map(w, w.At(4), w.g, ~size_t{0}, w.spare); });
  rows.push_back(Row{
      "map.twice_the_handle", E::mem_map, G::kTested, {801, 1}, [](World& w) {
        return Map(w, w.At(4), 2 * w.g, 0, w.spare);
      }}.Quirk([](sim::Quirks& quirks) { quirks.oversize_map_error = abi::kInvalidValue; }, {1}));
  rows.push_back(Row{
      "map.twice_the_handle_past_the_end", E::mem_map, G::kTested, {801, 1}, [](World& w) {
        return Map(w, w.At(7), 2 * w.g, 0, w.spare);
      }}.Quirk([](sim::Quirks& quirks) { quirks.oversize_map_error = abi::kInvalidValue; }, {1}));
  rows.push_back(Row{
      "map.offset_in_range", E::mem_map, G::kAssumed, {1, 801}, [](World& w) {
        return Map(w, w.At(4), w.g, w.g, w.two);
      }}.Quirk([](sim::Quirks& quirks) { quirks.offset_map_error = abi::kNotSupported; }, {801}));
  add("map.past_the_end", G::kAssumed, {1}, [](World& w) { return Map(w, w.At(7), 2 * w.g, 0, w.two); });
  add("map.address_misaligned", G::kAssumed, {1}, [](World& w) { return Map(w, w.At(4) + 4096, w.g, 0, w.spare); });
  add("map.size_misaligned", G::kAssumed, {1}, [](World& w) { return Map(w, w.At(4), w.g - 4096, 0, w.spare); });
  add("map.never_reserved", G::kTested, {1}, [](World& w) {
    const abi::DevicePtr gap = w.Reserve(2 * w.g);
    w.Need(w.d.mem_address_free(gap, 2 * w.g), "cuMemAddressFree");
    return Map(w, gap + w.g, w.g, 0, w.spare);
  });
  add("map.reservation_freed", G::kTested, {1}, [](World& w) {
    const abi::DevicePtr address = w.Reserve(w.g);
    w.Need(w.d.mem_address_free(address, w.g), "cuMemAddressFree");
    return Map(w, address, w.g, 0, w.spare);
  });
  add("map.handle_zero", G::kTested, {1}, [](World& w) { return Map(w, w.At(4), w.g, 0, 0); });
  add("map.handle_released", G::kTested, {1}, [](World& w) {
    const abi::MemHandle handle = w.Create(w.g);
    w.Need(w.d.mem_release(handle), "cuMemRelease");
    return Map(w, w.At(4), w.g, 0, handle);
  });
  add("map.handle_released_while_mapped", G::kDocumented, {1}, [](World& w) {
    const abi::MemHandle handle = w.Create(w.g);
    w.Need(w.Map(4, handle), "cuMemMap");
    w.Need(w.d.mem_release(handle), "cuMemRelease");
    const int result = Map(w, w.At(6), w.g, 0, handle);
    w.Need(w.d.mem_unmap(w.At(4), w.g), "cuMemUnmap");
    return result;
  });
  add("map.already_mapped", G::kDocumented, {1}, [](World& w) { return w.Map(0, w.spare); });
  add("map.partly_mapped", G::kDocumented, {1}, [](World& w) {
    const abi::MemHandle handle = w.Create(2 * w.g);
    const int result = w.Map(2, handle, 2);
    w.Need(w.d.mem_release(handle), "cuMemRelease");
    return result;
  });
  add("map.across_two_reservations", G::kAssumed, {1}, [](World& w) {
    abi::DevicePtr first = 0;
    abi::DevicePtr second = 0;
    w.not_applicable = !w.ReserveNeighbours(&first, &second);
    if (w.not_applicable) return 1;
    const int result = Map(w, first, 2 * w.g, 0, w.two);
    w.Need(w.d.mem_address_free(first, w.g), "cuMemAddressFree");
    w.Need(w.d.mem_address_free(second, w.g), "cuMemAddressFree");
    return result;
  });
  add("map.flags", G::kDocumented, {1}, [](World& w) { return Map(w, w.At(4), w.g, 0, w.spare, 1); });
  rows.push_back(Row{
      "map.too_many_mappings", E::mem_map, G::kDocumented, {2}, [](World& w) {
        return Map(w, w.At(4), w.g, 0, w.spare);
      }}.Configured([](sim::Config& config) { config.max_mappings = 2; }));
}

void AddUnmapRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_unmap, grade, std::move(codes), std::move(call)});
  };
  add("unmap.one_mapping", G::kDocumented, {0}, [](World& w) {
    w.one_mapped = false;
    return w.d.mem_unmap(w.At(0), w.g);
  });
  add("unmap.without_context", G::kAssumed, {0}, [](World& w) {
    w.one_mapped = false;
    return w.WithoutContext([&] { return w.d.mem_unmap(w.At(0), w.g); });
  });
  add("unmap.two_mappings_at_once", G::kReliedUpon, {0}, [](World& w) {
    w.one_mapped = w.two_mapped = false;
    return w.d.mem_unmap(w.At(0), 3 * w.g);
  });
  add("unmap.access_does_not_come_back", G::kDocumented, {0}, [](World& w) {
    const int result = w.d.mem_unmap(w.At(0), w.g);
    w.Need(w.Map(0, w.one), "cuMemMap");
    abi::u64 flags = ~abi::u64{0};
    const abi::Location location{abi::kLocationDevice, 0};
    w.Need(w.d.mem_get_access(&flags, &location, w.At(0)), "cuMemGetAccess");
    w.NeedThat(flags == abi::kAccessNone, "a new mapping without access");
    w.Need(w.SetAccess(w.At(0), w.g), "cuMemSetAccess");
    return result;
  });
  add("unmap.address_null", G::kTested, {1}, [](World& w) { return w.d.mem_unmap(0, w.g); });
  add("unmap.size_zero", G::kTested, {1}, [](World& w) { return w.d.mem_unmap(w.At(0), 0); });
  add("unmap.head_of_a_mapping", G::kTested, {1}, [](World& w) { return w.d.mem_unmap(w.At(1), w.g); });
  add("unmap.size_minus_one", G::kTested, {1}, [](World& w) { return w.d.mem_unmap(w.At(0), w.g - 1); });
  add("unmap.tail_of_a_mapping", G::kDocumented, {1}, [](World& w) { return w.d.mem_unmap(w.At(2), w.g); });
  add("unmap.one_and_a_half_mappings", G::kAssumed, {1}, [](World& w) { return w.d.mem_unmap(w.At(0), 2 * w.g); });
  add("unmap.never_mapped", G::kAssumed, {1}, [](World& w) { return w.d.mem_unmap(w.At(5), w.g); });
  add("unmap.already_unmapped", G::kAssumed, {1}, [](World& w) {
    w.Need(w.d.mem_unmap(w.At(0), w.g), "cuMemUnmap");
    w.one_mapped = false;
    return w.d.mem_unmap(w.At(0), w.g);
  });
  add("unmap.never_reserved", G::kAssumed, {1}, [](World& w) {
    const abi::DevicePtr gap = w.Reserve(w.g);
    w.Need(w.d.mem_address_free(gap, w.g), "cuMemAddressFree");
    return w.d.mem_unmap(gap, w.g);
  });
  rows.push_back(Row{
      "unmap.with_a_hole", E::mem_unmap, G::kAssumed, {1}, [](World& w) {
        w.Need(w.Map(4, w.spare), "cuMemMap");
        const int result = w.d.mem_unmap(w.At(1), 4 * w.g);  // granules 1 to 4; 3 is not mapped
        if (w.quirk) {
          w.two_mapped = false;
          w.NeedThat(w.d.mem_unmap(w.At(4), w.g) != 0, "the mapping after the hole gone as well");
        } else {
          w.Need(w.d.mem_unmap(w.At(4), w.g), "cuMemUnmap");
        }
        return result;
      }}.Quirk([](sim::Quirks& quirks) { quirks.unmap_hole_is_partial = true; }, {1}));
  rows.push_back(Row{
      "unmap.across_two_reservations", E::mem_unmap, G::kAssumed, {1}, [](World& w) {
        abi::DevicePtr first = 0;
        abi::DevicePtr second = 0;
        w.not_applicable = !w.ReserveNeighbours(&first, &second);
        if (w.not_applicable) return 1;
        w.Need(w.d.mem_map(first, w.g, 0, w.one, 0), "cuMemMap");
        w.Need(w.d.mem_map(second, w.g, 0, w.spare, 0), "cuMemMap");
        const int result = w.d.mem_unmap(first, 2 * w.g);
        if (!w.quirk) {
          w.Need(w.d.mem_unmap(first, w.g), "cuMemUnmap");
          w.Need(w.d.mem_unmap(second, w.g), "cuMemUnmap");
        }
        w.Need(w.d.mem_address_free(first, w.g), "cuMemAddressFree");
        w.Need(w.d.mem_address_free(second, w.g), "cuMemAddressFree");
        return result;
      }}.Quirk([](sim::Quirks& quirks) { quirks.unmap_across_reservations = true; }, {0}));
}

}  // namespace

void AddMappingRows(std::vector<Row>& rows) {
  AddMapRows(rows);
  AddUnmapRows(rows);
}

}  // namespace expanse::driver_spec

// cuMemGetAllocationGranularity, cuMemAddressReserve, cuMemAddressFree.

#include <thread>

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;

int Granularity(World& w, const abi::AllocationProp& prop, int option = abi::kGranularityMinimum) {
  size_t granularity = 0;
  const int result = w.d.mem_get_allocation_granularity(&granularity, &prop, option);
  if (result == abi::kSuccess) {
    w.NeedThat(granularity >= 4096 && (granularity & (granularity - 1)) == 0, "a power of two of pages");
  }
  return result;
}

int GranularityAt(World& w, int type, int location_type, int id) {
  abi::AllocationProp prop = w.Prop();
  prop.type = type;
  prop.location = {location_type, id};
  return Granularity(w, prop);
}

// Reserves, checks the address, and gives it back.
int Reserve(World& w, size_t size, size_t alignment, abi::DevicePtr hint = 0, abi::DevicePtr* got = nullptr) {
  abi::DevicePtr address = 0;
  const int result = w.d.mem_address_reserve(&address, size, alignment, hint, 0);
  if (result != abi::kSuccess) return result;
  w.NeedThat(address != 0, "an address");
  w.NeedThat(alignment == 0 || address % alignment == 0, "an address with the alignment asked for");
  w.NeedThat(address % w.g == 0, "an address with the granularity's alignment");
  if (got != nullptr) *got = address;
  w.Need(w.d.mem_address_free(address, size), "cuMemAddressFree of what was reserved");
  return result;
}

void AddGranularityRows(std::vector<Row>& rows) {
  rows.push_back({"granularity.minimum", E::mem_get_allocation_granularity, G::kReliedUpon, {0}, [](World& w) {
                    return Granularity(w, w.Prop(), abi::kGranularityMinimum);
                  }});
  rows.push_back({"granularity.recommended", E::mem_get_allocation_granularity, G::kReliedUpon, {0}, [](World& w) {
                    return Granularity(w, w.Prop(), abi::kGranularityRecommended);
                  }});
  rows.push_back({"granularity.output_null", E::mem_get_allocation_granularity, G::kTested, {1}, [](World& w) {
                    const abi::AllocationProp prop = w.Prop();
                    return w.d.mem_get_allocation_granularity(nullptr, &prop, 0);
                  }});
  // Sources disagree on whether the real driver survives it.
  rows.push_back(Row{
      "granularity.properties_null", E::mem_get_allocation_granularity, G::kContested, {1}, [](World& w) {
        size_t granularity = 0;
        return w.d.mem_get_allocation_granularity(&granularity, nullptr, 0);
      }}.SimulatorOnly());
  rows.push_back({"granularity.option_2", E::mem_get_allocation_granularity, G::kTested, {1}, [](World& w) {
                    return Granularity(w, w.Prop(), 2);
                  }});
  rows.push_back({"granularity.option_negative", E::mem_get_allocation_granularity, G::kTested, {1}, [](World& w) {
                    return Granularity(w, w.Prop(), -1);
                  }});
  rows.push_back(
      {"granularity.device_negative", E::mem_get_allocation_granularity, G::kContested, {0, 1, 101}, [](World& w) {
         return GranularityAt(w, abi::kAllocationPinned, abi::kLocationDevice, -1);
       }});
  rows.push_back(
      {"granularity.device_too_large", E::mem_get_allocation_granularity, G::kContested, {0, 1, 101}, [](World& w) {
         return GranularityAt(w, abi::kAllocationPinned, abi::kLocationDevice, w.devices);
       }});
  rows.push_back({"granularity.type_invalid", E::mem_get_allocation_granularity, G::kContested, {0, 1}, [](World& w) {
                    return GranularityAt(w, abi::kAllocationInvalid, abi::kLocationDevice, 0);
                  }});
  rows.push_back(
      {"granularity.location_invalid", E::mem_get_allocation_granularity, G::kContested, {0, 1}, [](World& w) {
         return GranularityAt(w, abi::kAllocationPinned, abi::kLocationInvalid, 0);
       }});
  rows.push_back({"granularity.host", E::mem_get_allocation_granularity, G::kAssumed, {0}, [](World& w) {
                    return GranularityAt(w, abi::kAllocationPinned, abi::kLocationHost, 0);
                  }});
  rows.push_back({"granularity.host_numa", E::mem_get_allocation_granularity, G::kAssumed, {0}, [](World& w) {
                    return GranularityAt(w, abi::kAllocationPinned, abi::kLocationHostNuma, 0);
                  }});
}

void AddReserveRows(std::vector<Row>& rows) {
  rows.push_back({"reserve.default_alignment", E::mem_address_reserve, G::kDocumented, {0}, [](World& w) {
                    return Reserve(w, 4 * w.g, 0);
                  }});
  for (const size_t alignment : {2, 64, 4096}) {
    rows.push_back({"reserve.alignment_" + std::to_string(alignment),
                    E::mem_address_reserve,
                    G::kTested,
                    {0},
                    [alignment](World& w) { return Reserve(w, 4 * w.g, alignment); }});
  }
  rows.push_back({"reserve.alignment_8_granules", E::mem_address_reserve, G::kDocumented, {0}, [](World& w) {
                    return Reserve(w, w.g, 8 * w.g);
                  }});
  rows.push_back({"reserve.alignment_1_gib", E::mem_address_reserve, G::kDocumented, {0}, [](World& w) {
                    return Reserve(w, w.g, size_t{1} << 30);
                  }});
  rows.push_back({"reserve.takes_no_memory", E::mem_address_reserve, G::kDocumented, {0}, [](World& w) {
                    const size_t before = w.FreeMemory();
                    abi::DevicePtr address = 0;
                    const int result = w.d.mem_address_reserve(&address, 1024 * w.g, 0, 0, 0);
                    w.NeedThat(w.FreeMemory() >= before, "no less free memory than before");
                    abi::u64 flags = 0;
                    const abi::Location location{abi::kLocationDevice, 0};
                    w.NeedThat(w.d.mem_get_access(&flags, &location, address) != 0, "nothing mapped");
                    w.Need(w.d.mem_address_free(address, 1024 * w.g), "cuMemAddressFree");
                    return result;
                  }});
  rows.push_back({"reserve.hint_taken", E::mem_address_reserve, G::kDocumented, {0}, [](World& w) {
                    abi::DevicePtr got = 0;
                    const int result = Reserve(w, w.g, 0, w.base, &got);
                    w.NeedThat(got < w.base || got >= w.base + 8 * w.g, "an address elsewhere");
                    return result;
                  }});
  // A free hint need not be honoured; which it is shows in the address alone.
  rows.push_back(Row{
      "reserve.hint_free", E::mem_address_reserve, G::kReliedUpon, {0}, [](World& w) {
        const abi::DevicePtr whole = w.Reserve(4 * w.g);
        w.Need(w.d.mem_address_free(whole, 4 * w.g), "cuMemAddressFree");
        abi::DevicePtr got = 0;
        const int result = Reserve(w, w.g, 0, whole + 2 * w.g, &got);
        if (w.simulator != nullptr) {
          w.NeedThat((got == whole + 2 * w.g) == !w.quirk, "the hint honoured unless the quirk is on");
        }
        return result;
      }}.Quirk([](sim::Quirks& quirks) { quirks.honour_address_hints = false; }, {0}));
  rows.push_back({"reserve.output_null", E::mem_address_reserve, G::kTested, {1}, [](World& w) {
                    return w.d.mem_address_reserve(nullptr, w.g, 0, 0, 0);
                  }});
  rows.push_back(
      {"reserve.size_zero", E::mem_address_reserve, G::kTested, {1}, [](World& w) { return Reserve(w, 0, 0); }});
  rows.push_back({"reserve.size_off_page", E::mem_address_reserve, G::kTested, {1}, [](World& w) {
                    return Reserve(w, w.g + 1, 0);
                  }});
  rows.push_back({"reserve.size_nearly_everything", E::mem_address_reserve, G::kTested, {1}, [](World& w) {
                    return Reserve(w, ~size_t{0} - 4095, 0);
                  }});
  rows.push_back(
      {"reserve.alignment_3", E::mem_address_reserve, G::kTested, {1}, [](World& w) { return Reserve(w, w.g, 3); }});
  rows.push_back({"reserve.hint_off_page", E::mem_address_reserve, G::kAssumed, {1}, [](World& w) {
                    return Reserve(w, w.g, 0, w.base + 64 * w.g + 1);
                  }});
  rows.push_back({"reserve.flags", E::mem_address_reserve, G::kAssumed, {1}, [](World& w) {
                    abi::DevicePtr address = 0;
                    const int result = w.d.mem_address_reserve(&address, w.g, 0, 0, 1);
                    if (result == 0) w.Need(w.d.mem_address_free(address, w.g), "cuMemAddressFree");
                    return result;
                  }});
  rows.push_back({"reserve.no_room", E::mem_address_reserve, G::kReliedUpon, {2, 1}, [](World& w) {
                    const size_t space = w.simulator != nullptr
                                             ? static_cast<size_t>(w.simulator->config().address_space.count())
                                             : size_t{1} << 48;
                    return Reserve(w, space, 0);
                  }});
  rows.push_back({"reserve.without_context", E::mem_address_reserve, G::kAssumed, {0}, [](World& w) {
                    return w.WithoutContext([&] { return Reserve(w, w.g, 0); });
                  }});
}

void AddFreeRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_address_free, grade, {1}, std::move(call)});
  };
  // The world's reservation holds mappings; these act on an empty one, which must stay as it was.
  auto refused = [&add](const char* id, Grade grade, size_t skipped, size_t granules) {
    add(id, grade, [skipped, granules](World& w) {
      const abi::DevicePtr address = w.Reserve(4 * w.g);
      const int result = w.d.mem_address_free(address + skipped * w.g, granules * w.g);
      w.Need(w.d.mem_address_free(address, 4 * w.g), "cuMemAddressFree as reserved");
      return result;
    });
  };
  refused("free.size_zero", G::kTested, 0, 0);
  refused("free.size_doubled", G::kTested, 0, 8);
  refused("free.prefix", G::kDocumented, 0, 2);
  refused("free.suffix", G::kDocumented, 2, 2);
  refused("free.interior", G::kDocumented, 1, 2);
  add("free.null", G::kTested, [](World& w) { return w.d.mem_address_free(0, w.g); });
  add("free.twice", G::kTested, [](World& w) {
    const abi::DevicePtr address = w.Reserve(4 * w.g);
    w.Need(w.d.mem_address_free(address, 4 * w.g), "cuMemAddressFree");
    return w.d.mem_address_free(address, 4 * w.g);
  });
  add("free.two_neighbours_at_once", G::kDocumented, [](World& w) {
    abi::DevicePtr first = 0;
    abi::DevicePtr second = 0;
    w.not_applicable = !w.ReserveNeighbours(&first, &second);
    if (w.not_applicable) return 1;
    const int result = w.d.mem_address_free(first, 2 * w.g);
    w.Need(w.d.mem_address_free(first, w.g), "cuMemAddressFree");
    w.Need(w.d.mem_address_free(second, w.g), "cuMemAddressFree");
    return result;
  });
  rows.push_back(Row{
      "free.with_mappings", E::mem_address_free, G::kTested, {1}, [](World& w) {
        const abi::DevicePtr address = w.Reserve(2 * w.g);
        w.Need(w.d.mem_map(address, w.g, 0, w.spare, 0), "cuMemMap");
        const int result = w.d.mem_address_free(address, 2 * w.g);
        if (w.quirk) return result;
        w.Need(w.d.mem_unmap(address, w.g), "cuMemUnmap");
        w.Need(w.d.mem_address_free(address, 2 * w.g), "cuMemAddressFree after cuMemUnmap");
        return result;
      }}.Quirk([](sim::Quirks& quirks) { quirks.address_free_live = true; }, {0}));
  rows.push_back({"free.on_another_thread", E::mem_address_free, G::kAssumed, {0}, [](World& w) {
                    const abi::DevicePtr address = w.Reserve(w.g);
                    int result = -1;
                    std::thread([&] { result = w.d.mem_address_free(address, w.g); }).join();
                    return result;
                  }});
}

}  // namespace

void AddReservationRows(std::vector<Row>& rows) {
  AddGranularityRows(rows);
  AddReserveRows(rows);
  AddFreeRows(rows);
}

}  // namespace expanse::driver_spec

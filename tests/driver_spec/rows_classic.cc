// cuMemGetInfo, cuMemAlloc, cuMemFree.

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;

int Alloc(World& w, size_t size) {
  abi::DevicePtr address = 0;
  const int result = w.d.mem_alloc(&address, size);
  if (result == abi::kSuccess) {
    w.NeedThat(address != 0 && address % 256 == 0, "an address aligned to 256 bytes");
    w.Need(w.d.mem_free(address), "cuMemFree of what was allocated");
  }
  return result;
}

}  // namespace

void AddClassicMemoryRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, E entry_point, Grade grade, std::vector<int> codes,
                     std::function<int(World&)> call) {
    rows.push_back({id, entry_point, grade, std::move(codes), std::move(call)});
  };
  add("memory_info.value", E::mem_get_info, G::kDocumented, {0}, [](World& w) {
    size_t free = 0;
    size_t total = 0;
    const int result = w.d.mem_get_info(&free, &total);
    w.NeedThat(free > 0 && free < total, "less free than there is, for the world holds some");
    return result;
  });
  add("memory_info.without_context", E::mem_get_info, G::kReliedUpon, {201}, [](World& w) {
    return w.WithoutContext([&] {
      size_t free = 0;
      size_t total = 0;
      return w.d.mem_get_info(&free, &total);
    });
  });
  add("memory_info.output_null", E::mem_get_info, G::kAssumed, {1}, [](World& w) {
    size_t total = 0;
    return w.d.mem_get_info(nullptr, &total);
  });

  for (const size_t size : {size_t{1}, size_t{512}, size_t{3} << 20}) {
    rows.push_back({"alloc.size_" + std::to_string(size), E::mem_alloc, G::kDocumented, {0}, [size](World& w) {
                      return Alloc(w, size);
                    }});
  }
  add("alloc.works", E::mem_alloc, G::kDocumented, {0}, [](World& w) {
    abi::DevicePtr address = 0;
    const int result = w.d.mem_alloc(&address, w.g);
    w.NeedThat(w.SameBytes(address, address), "memory that works");
    w.Need(w.d.mem_free(address), "cuMemFree");
    return result;
  });
  add("alloc.size_zero", E::mem_alloc, G::kDocumented, {1}, [](World& w) { return Alloc(w, 0); });
  add("alloc.output_null", E::mem_alloc, G::kDocumented, {1}, [](World& w) { return w.d.mem_alloc(nullptr, w.g); });
  add("alloc.more_than_there_is", E::mem_alloc, G::kDocumented, {2}, [](World& w) {
    size_t total = 0;
    w.Need(w.d.device_total_mem(&total, 0), "cuDeviceTotalMem");
    return Alloc(w, total + w.g);
  });
  add("alloc.without_context", E::mem_alloc, G::kDocumented, {201},
      [](World& w) { return w.WithoutContext([&] { return Alloc(w, w.g); }); });

  add("free_classic.null", E::mem_free, G::kDocumented, {0}, [](World& w) { return w.d.mem_free(0); });
  add("free_classic.interior", E::mem_free, G::kTested, {1}, [](World& w) {
    abi::DevicePtr address = 0;
    w.Need(w.d.mem_alloc(&address, w.g), "cuMemAlloc");
    const int result = w.d.mem_free(address + 512);
    w.Need(w.d.mem_free(address), "cuMemFree");
    return result;
  });
  add("free_classic.twice", E::mem_free, G::kDocumented, {1}, [](World& w) {
    abi::DevicePtr address = 0;
    w.Need(w.d.mem_alloc(&address, w.g), "cuMemAlloc");
    w.Need(w.d.mem_free(address), "cuMemFree");
    return w.d.mem_free(address);
  });
  add("free_classic.mapped_memory", E::mem_free, G::kAssumed, {1}, [](World& w) { return w.d.mem_free(w.At(0)); });
}

}  // namespace expanse::driver_spec

// cuMemCreate, cuMemRelease.

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;

// Creates and, where that succeeds, releases.
int Create(World& w, size_t size, const abi::AllocationProp& prop, abi::u64 flags = 0) {
  abi::MemHandle handle = 0;
  const int result = w.d.mem_create(&handle, size, &prop, flags);
  if (result == abi::kSuccess) {
    w.NeedThat(handle != 0, "a handle that is not 0");
    w.Need(w.d.mem_release(handle), "cuMemRelease of what was created");
  }
  return result;
}

int CreateWith(World& w, const std::function<void(abi::AllocationProp&)>& change) {
  abi::AllocationProp prop = w.Prop();
  change(prop);
  return Create(w, w.g, prop);
}

size_t TotalMemory(World& w) {
  size_t total = 0;
  w.Need(w.d.device_total_mem(&total, 0), "cuDeviceTotalMem");
  return total / w.g * w.g;
}

void AddCreateRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_create, grade, std::move(codes), std::move(call)});
  };
  auto with = [&add](const char* id, Grade grade, std::vector<int> codes,
                     std::function<void(abi::AllocationProp&)> change) {
    add(id, grade, std::move(codes), [change](World& w) { return CreateWith(w, change); });
  };
  add("create.commits_memory_at_once", G::kDocumented, {0}, [](World& w) {
    const size_t before = w.FreeMemory();
    const abi::AllocationProp prop = w.Prop();
    abi::MemHandle handle = 0;
    const int result = w.d.mem_create(&handle, 4 * w.g, &prop, 0);
    w.NeedThat(before - w.FreeMemory() >= 4 * w.g, "less free memory by what was created");
    w.Need(w.d.mem_release(handle), "cuMemRelease");
    return result;
  });
  add("create.handles_differ", G::kDocumented, {0}, [](World& w) {
    const abi::MemHandle handle = w.Create(w.g);
    w.NeedThat(handle != w.one && handle != w.two && handle != w.spare, "a handle of its own");
    return w.d.mem_release(handle);
  });
  with("create.rdma_is_a_request", G::kReliedUpon, {0},
       [](abi::AllocationProp& prop) { prop.alloc_flags.gpu_direct_rdma_capable = 1; });
  with("create.compression_is_a_request", G::kDocumented, {0},
       [](abi::AllocationProp& prop) { prop.alloc_flags.compression_type = 1; });
  with("create.posix_fd", G::kReliedUpon, {0},
       [](abi::AllocationProp& prop) { prop.requested_handle_types = abi::kHandlePosixFd; });
  add("create.without_context", G::kAssumed, {0},
      [](World& w) { return w.WithoutContext([&] { return Create(w, w.g, w.Prop()); }); });
  add("create.handle_null", G::kTested, {1}, [](World& w) {
    const abi::AllocationProp prop = w.Prop();
    return w.d.mem_create(nullptr, w.g, &prop, 0);
  });
  add("create.properties_null", G::kTested, {1}, [](World& w) {
    abi::MemHandle handle = 0;
    return w.d.mem_create(&handle, w.g, nullptr, 0);
  });
  add("create.size_zero", G::kTested, {1}, [](World& w) { return Create(w, 0, w.Prop()); });
  add("create.size_2048", G::kTested, {1}, [](World& w) { return Create(w, 2048, w.Prop()); });
  add("create.size_6912", G::kTested, {1}, [](World& w) { return Create(w, 6912, w.Prop()); });
  add("create.size_off_granularity", G::kTested, {1}, [](World& w) { return Create(w, w.g + 4096, w.Prop()); });
  with("create.type_invalid", G::kTested, {1}, [](abi::AllocationProp& prop) { prop.type = abi::kAllocationInvalid; });
  with("create.type_out_of_range", G::kTested, {1}, [](abi::AllocationProp& prop) { prop.type = 0x7fffffff; });
  with("create.type_managed", G::kAssumed, {1}, [](abi::AllocationProp& prop) { prop.type = abi::kAllocationManaged; });
  with("create.location_invalid", G::kTested, {1},
       [](abi::AllocationProp& prop) { prop.location.type = abi::kLocationInvalid; });
  with("create.device_negative", G::kTested, {101}, [](abi::AllocationProp& prop) { prop.location.id = -1; });
  add("create.device_too_large", G::kTested, {101}, [](World& w) { return Create(w, w.g, w.Prop(w.devices)); });
  add("create.flags", G::kAssumed, {1}, [](World& w) { return Create(w, w.g, w.Prop(), 1); });
  with("create.host_with_handle_types", G::kDocumented, {1}, [](abi::AllocationProp& prop) {
    prop.location = {abi::kLocationHost, 0};
    prop.requested_handle_types = abi::kHandlePosixFd;
  });
  with("create.host_numa_current", G::kDocumented, {1}, [](abi::AllocationProp& prop) {
    prop.location = {abi::kLocationHostNumaCurrent, 0};
  });
  with("create.win32", G::kAssumed, {801, 1},
       [](abi::AllocationProp& prop) { prop.requested_handle_types = abi::kHandleWin32; });
  with("create.win32_kmt", G::kAssumed, {801, 1},
       [](abi::AllocationProp& prop) { prop.requested_handle_types = abi::kHandleWin32Kmt; });
  // Depends on how the machine is set up.
  rows.push_back(Row{
      "create.fabric_without_channel", E::mem_create, G::kReliedUpon, {800}, [](World& w) {
        return CreateWith(w, [](abi::AllocationProp& prop) { prop.requested_handle_types = abi::kHandleFabric; });
      }}.SimulatorOnly());
  add("create.more_than_there_is", G::kDocumented, {2}, [](World& w) {
    const int result = Create(w, TotalMemory(w) + w.g, w.Prop());
    w.Need(Create(w, w.g, w.Prop()), "cuMemCreate of what there is, for out of memory is not sticky");
    return result;
  });
  add("create.exhausted", G::kDocumented, {2}, [](World& w) {
    // In large pieces, so that it ends soon on any device.
    std::vector<abi::MemHandle> handles;
    const abi::AllocationProp prop = w.Prop();
    int result = 0;
    for (size_t size = TotalMemory(w) / w.g / 4 * w.g; size >= w.g; size = size / w.g / 2 * w.g) {
      for (result = 0; result == 0;) {
        abi::MemHandle handle = 0;
        result = w.d.mem_create(&handle, size, &prop, 0);
        if (result == 0) handles.push_back(handle);
      }
      if (result != abi::kOutOfMemory) break;
    }
    for (const abi::MemHandle handle : handles) w.Need(w.d.mem_release(handle), "cuMemRelease");
    return result;
  });
  rows.push_back(Row{
      "create.too_many_handles", E::mem_create, G::kAssumed, {2}, [](World& w) {
        return Create(w, w.g, w.Prop());
      }}.Configured([](sim::Config& config) { config.max_handles = 3; }));
}

void AddReleaseRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, Grade grade, std::vector<int> codes, std::function<int(World&)> call) {
    rows.push_back({id, E::mem_release, grade, std::move(codes), std::move(call)});
  };
  add("release.unmapped", G::kDocumented, {0}, [](World& w) {
    const size_t before = w.FreeMemory();
    const int result = w.d.mem_release(w.spare);
    w.spare = 0;
    if (w.simulator != nullptr) w.NeedThat(w.FreeMemory() == before + w.g, "the memory free again");
    return result;
  });
  add("release.while_mapped", G::kDocumented, {0}, [](World& w) {
    w.Need(w.Map(5, w.spare), "cuMemMap");
    w.Need(w.SetAccess(w.At(5), w.g), "cuMemSetAccess");
    const size_t before = w.FreeMemory();
    const int result = w.d.mem_release(w.spare);
    w.spare = 0;
    w.NeedThat(w.FreeMemory() <= before, "no more free memory: the mapping holds it");
    w.NeedThat(w.SameBytes(w.At(5), w.At(5)), "memory that still works");
    w.Need(w.d.mem_unmap(w.At(5), w.g), "cuMemUnmap");
    if (w.simulator != nullptr) w.NeedThat(w.FreeMemory() == before + w.g, "the memory free after cuMemUnmap");
    return result;
  });
  // Undefined by the documentation; tests saw 1.
  rows.push_back(Row{"release.zero", E::mem_release, G::kTested, {1}, [](World& w) { return w.d.mem_release(0); }}
                     .SimulatorOnly()
                     .Breach());
  rows.push_back(Row{"release.twice",
                     E::mem_release,
                     G::kTested,
                     {1},
                     [](World& w) {
                       const abi::MemHandle handle = w.Create(w.g);
                       w.Need(w.d.mem_release(handle), "cuMemRelease");
                       return w.d.mem_release(handle);
                     }}
                     .SimulatorOnly()
                     .Breach());
  rows.push_back(Row{"release.twice_while_mapped",
                     E::mem_release,
                     G::kTested,
                     {1},
                     [](World& w) {
                       w.Need(w.Map(5, w.spare), "cuMemMap");
                       w.Need(w.d.mem_release(w.spare), "cuMemRelease");
                       const int result = w.d.mem_release(w.spare);
                       w.spare = 0;
                       w.Need(w.d.mem_unmap(w.At(5), w.g), "cuMemUnmap");
                       return result;
                     }}
                     .SimulatorOnly()
                     .Breach());
}

}  // namespace

void AddPhysicalMemoryRows(std::vector<Row>& rows) {
  AddCreateRows(rows);
  AddReleaseRows(rows);
}

}  // namespace expanse::driver_spec

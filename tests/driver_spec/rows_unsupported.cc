// What the simulator does not model: it must say so rather than pretend.

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {

void AddUnsupportedRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, EntryPoint entry_point, std::function<int(World&)> call) {
    rows.push_back(Row{id, entry_point, Grade::kAssumed, {801}, std::move(call)}.SimulatorOnly());
  };
  add("export.unsupported", EntryPoint::mem_export, [](World& w) {
    int descriptor = -1;
    return w.d.mem_export(&descriptor, w.one, abi::kHandlePosixFd, 0);
  });
  add("import.unsupported", EntryPoint::mem_import, [](World& w) {
    abi::MemHandle handle = 0;
    return w.d.mem_import(&handle, nullptr, abi::kHandlePosixFd);
  });
  add("alloc_async.unsupported", EntryPoint::mem_alloc_async, [](World& w) {
    abi::DevicePtr address = 0;
    return w.d.mem_alloc_async(&address, w.g, w.stream);
  });
  add("free_async.unsupported", EntryPoint::mem_free_async,
      [](World& w) { return w.d.mem_free_async(w.At(0), w.stream); });
  add("default_pool.unsupported", EntryPoint::device_get_default_mem_pool, [](World& w) {
    abi::MemPool pool = nullptr;
    return w.d.device_get_default_mem_pool(&pool, 0);
  });
  add("trim_pool.unsupported", EntryPoint::mem_pool_trim_to, [](World& w) { return w.d.mem_pool_trim_to(nullptr, 0); });
  add("set_pool_attribute.unsupported", EntryPoint::mem_pool_set_attribute, [](World& w) {
    abi::u64 threshold = 0;
    return w.d.mem_pool_set_attribute(nullptr, 4, &threshold);
  });
  add("get_pool_attribute.unsupported", EntryPoint::mem_pool_get_attribute, [](World& w) {
    abi::u64 threshold = 0;
    return w.d.mem_pool_get_attribute(nullptr, 4, &threshold);
  });
  add("create_pool.unsupported", EntryPoint::mem_pool_create, [](World& w) {
    abi::PoolProps props{};
    abi::MemPool pool = nullptr;
    return w.d.mem_pool_create(&pool, &props);
  });
  add("destroy_pool.unsupported", EntryPoint::mem_pool_destroy, [](World& w) { return w.d.mem_pool_destroy(nullptr); });
}

}  // namespace expanse::driver_spec

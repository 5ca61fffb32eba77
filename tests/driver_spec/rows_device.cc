// Initialisation, errors, devices.

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;
using Start = World::Start;

// What a call gives in a forked child of this process.
template <typename Call>
int InChild(World& w, Call&& call) {
  const pid_t child = fork();
  if (child == 0) _exit(call() & 0xff);
  int status = 0;
  w.NeedThat(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "a child that ends");
  return WEXITSTATUS(status);
}

void AddInitRows(std::vector<Row>& rows) {
  rows.push_back({"init.again", E::init, G::kDocumented, {0}, [](World& w) { return w.d.init(0); }});
  rows.push_back({"init.flags", E::init, G::kDocumented, {1}, [](World& w) { return w.d.init(1); }});
  rows.push_back({"init.in_a_forked_child", E::init, G::kReliedUpon, {3}, [](World& w) {
                    return InChild(w, [&] { return w.d.init(0); });
                  }});
  rows.push_back({"create.in_a_forked_child", E::mem_create, G::kReliedUpon, {3}, [](World& w) {
                    return InChild(w, [&] {
                      abi::MemHandle handle = 0;
                      const abi::AllocationProp prop = w.Prop();
                      return w.d.mem_create(&handle, w.g, &prop, 0);
                    });
                  }});
  rows.push_back({"current.in_a_forked_child", E::ctx_get_current, G::kReliedUpon, {3}, [](World& w) {
                    return InChild(w, [&] {
                      abi::Context current = nullptr;
                      return w.d.ctx_get_current(&current);
                    });
                  }});

  auto uninitialised = [&rows](const char* id, E entry_point, int code, std::function<int(World&)> call) {
    rows.push_back(Row{id, entry_point, G::kTested, {code}, std::move(call)}.From(Start::kNothing));
  };
  uninitialised("count.before_init", E::device_get_count, 3, [](World& w) {
    int count = 0;
    return w.d.device_get_count(&count);
  });
  uninitialised("current.before_init", E::ctx_get_current, 3, [](World& w) {
    abi::Context current = nullptr;
    return w.d.ctx_get_current(&current);
  });
  uninitialised("retain_context.before_init", E::primary_ctx_retain, 3, [](World& w) {
    abi::Context context = nullptr;
    return w.d.primary_ctx_retain(&context, 0);
  });
  uninitialised("reserve.before_init", E::mem_address_reserve, 3, [](World& w) {
    abi::DevicePtr address = 0;
    return w.d.mem_address_reserve(&address, w.g, 0, 0, 0);
  });
  uninitialised("create.before_init", E::mem_create, 3, [](World& w) {
    abi::MemHandle handle = 0;
    const abi::AllocationProp prop = w.Prop();
    return w.d.mem_create(&handle, w.g, &prop, 0);
  });
  uninitialised("version.before_init", E::driver_get_version, 0, [](World& w) {
    int version = 0;
    return w.d.driver_get_version(&version);
  });
  uninitialised("error_name.before_init", E::get_error_name, 0, [](World& w) {
    const char* name = nullptr;
    return w.d.get_error_name(abi::kInvalidValue, &name);
  });
}

void AddErrorRows(std::vector<Row>& rows) {
  rows.push_back({"version.value", E::driver_get_version, G::kDocumented, {0}, [](World& w) {
                    int version = 0;
                    const int result = w.d.driver_get_version(&version);
                    w.NeedThat(version >= 10020, "a version that has virtual memory management");
                    return result;
                  }});
  rows.push_back({"version.output_null", E::driver_get_version, G::kDocumented, {1}, [](World& w) {
                    return w.d.driver_get_version(nullptr);
                  }});
  rows.push_back({"error_name.known", E::get_error_name, G::kDocumented, {0}, [](World& w) {
                    const char* name = nullptr;
                    const int result = w.d.get_error_name(abi::kInvalidValue, &name);
                    w.NeedThat(name != nullptr && std::strcmp(name, "CUDA_ERROR_INVALID_VALUE") == 0, "its name");
                    return result;
                  }});
  rows.push_back({"error_name.unknown", E::get_error_name, G::kDocumented, {1}, [](World& w) {
                    const char* name = "not touched";
                    const int result = w.d.get_error_name(static_cast<abi::Result>(54321), &name);
                    w.NeedThat(name == nullptr, "null");
                    return result;
                  }});
  rows.push_back({"error_string.known", E::get_error_string, G::kDocumented, {0}, [](World& w) {
                    const char* text = nullptr;
                    const int result = w.d.get_error_string(abi::kInvalidValue, &text);
                    w.NeedThat(text != nullptr && std::strcmp(text, "invalid argument") == 0, "its description");
                    return result;
                  }});
  rows.push_back({"error_string.unknown", E::get_error_string, G::kDocumented, {1}, [](World& w) {
                    const char* text = "not touched";
                    const int result = w.d.get_error_string(static_cast<abi::Result>(54321), &text);
                    w.NeedThat(text == nullptr, "null");
                    return result;
                  }});
}

// A query of a device: refused for -1 and for the number of devices with 101, and for a null output with 1.
void AddDeviceQuery(std::vector<Row>& rows, const std::string& name, E entry_point,
                    std::function<int(World&, bool null, int device)> query) {
  rows.push_back(
      {name + ".device_0", entry_point, G::kDocumented, {0}, [query](World& w) { return query(w, false, 0); }});
  rows.push_back({name + ".device_negative", entry_point, G::kDocumented, {101}, [query](World& w) {
                    return query(w, false, -1);
                  }});
  rows.push_back({name + ".device_too_large", entry_point, G::kDocumented, {101}, [query](World& w) {
                    return query(w, false, w.devices);
                  }});
  rows.push_back(
      {name + ".output_null", entry_point, G::kDocumented, {1}, [query](World& w) { return query(w, true, 0); }});
}

int AskAttribute(World& w, int attribute, int expected) {
  int value = -1;
  const int result = w.d.device_get_attribute(&value, attribute, 0);
  if (result == abi::kSuccess) w.NeedThat(value == expected, "the attribute's value");
  return result;
}

void AddDeviceQueryRows(std::vector<Row>& rows) {
  rows.push_back({"count.value", E::device_get_count, G::kDocumented, {0}, [](World& w) {
                    int count = 0;
                    const int result = w.d.device_get_count(&count);
                    w.NeedThat(count >= 1, "a device");
                    return result;
                  }});
  rows.push_back({"count.output_null", E::device_get_count, G::kDocumented, {1}, [](World& w) {
                    return w.d.device_get_count(nullptr);
                  }});
  AddDeviceQuery(rows, "get", E::device_get, [](World& w, bool null, int ordinal) {
    abi::Device device = -1;
    const int result = w.d.device_get(null ? nullptr : &device, ordinal);
    if (result == abi::kSuccess) w.NeedThat(device == ordinal, "a device that is its ordinal");
    return result;
  });
  AddDeviceQuery(rows, "name", E::device_get_name, [](World& w, bool null, int device) {
    char name[256] = {};
    const int result = w.d.device_get_name(null ? nullptr : name, sizeof name, device);
    if (result == abi::kSuccess) w.NeedThat(std::strlen(name) > 0, "a name");
    return result;
  });
  rows.push_back({"name.truncated", E::device_get_name, G::kDocumented, {0}, [](World& w) {
                    char name[4] = {'x', 'x', 'x', 'x'};
                    const int result = w.d.device_get_name(name, sizeof name, 0);
                    w.NeedThat(name[3] == '\0' && std::strlen(name) == 3, "three characters and a zero");
                    return result;
                  }});
  AddDeviceQuery(rows, "uuid", E::device_get_uuid, [](World& w, bool null, int device) {
    abi::Uuid uuid{};
    return static_cast<int>(w.d.device_get_uuid(null ? nullptr : &uuid, device));
  });
  AddDeviceQuery(rows, "total_memory", E::device_total_mem, [](World& w, bool null, int device) {
    size_t total = 0;
    const int result = w.d.device_total_mem(null ? nullptr : &total, device);
    if (result == abi::kSuccess) w.NeedThat(total > 0, "some memory");
    return result;
  });
  AddDeviceQuery(rows, "attribute", E::device_get_attribute, [](World& w, bool null, int device) {
    int value = 0;
    return static_cast<int>(
        w.d.device_get_attribute(null ? nullptr : &value, abi::kAttributeVirtualMemoryManagement, device));
  });
  rows.push_back({"attribute.virtual_memory_management", E::device_get_attribute, G::kDocumented, {0}, [](World& w) {
                    return AskAttribute(w, abi::kAttributeVirtualMemoryManagement, 1);
                  }});
  rows.push_back({"attribute.unified_addressing", E::device_get_attribute, G::kDocumented, {0}, [](World& w) {
                    return AskAttribute(w, abi::kAttributeUnifiedAddressing, 1);
                  }});
  rows.push_back({"attribute.newer_than_the_driver", E::device_get_attribute, G::kDocumented, {1}, [](World& w) {
                    return AskAttribute(w, 100000, 0);
                  }});
  AddDeviceQuery(rows, "peer", E::device_can_access_peer, [](World& w, bool null, int device) {
    int can = -1;
    const int result = w.d.device_can_access_peer(null ? nullptr : &can, 0, device);
    if (result == abi::kSuccess) w.NeedThat(can == 0, "no peer access of a device to itself");
    return result;
  });
}

}  // namespace

void AddDeviceRows(std::vector<Row>& rows) {
  AddInitRows(rows);
  AddErrorRows(rows);
  AddDeviceQueryRows(rows);
}

}  // namespace expanse::driver_spec

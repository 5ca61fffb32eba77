// Initialisation, errors, devices.

#include <cstdio>

#include "vmm/sim/entry_points.h"
#include "vmm/sim/error_text.h"

namespace expanse::sim {
namespace {

abi::Result Init(unsigned flags) {
  return Enter(EntryPoint::init, [&](DriverState& state) {
    if (flags != 0) return abi::kInvalidValue;
    if (!state.initialized) {
      state.initialized = true;
      LiveDriver::Current().load()->forks_at_init.store(LiveDriver::Forks());
    }
    return abi::kSuccess;
  });
}

abi::Result DriverGetVersion(int* version) {
  return Enter(EntryPoint::driver_get_version, [&](DriverState& state) {
    if (version == nullptr) return abi::kInvalidValue;
    *version = state.config.driver_version;
    return abi::kSuccess;
  });
}

template <typename TextOf>
abi::Result ErrorTextFor(EntryPoint entry_point, const char** out, TextOf&& text_of) {
  return Enter(entry_point, [&](DriverState&) {
    if (out == nullptr) return abi::kInvalidValue;
    *out = text_of();
    return *out == nullptr ? abi::kInvalidValue : abi::kSuccess;
  });
}

abi::Result GetErrorName(abi::Result result, const char** name) {
  return ErrorTextFor(EntryPoint::get_error_name, name, [&] { return ErrorName(result); });
}

abi::Result GetErrorString(abi::Result result, const char** text) {
  return ErrorTextFor(EntryPoint::get_error_string, text, [&] { return ErrorString(result); });
}

abi::Result DeviceGet(abi::Device* device, int ordinal) {
  return Enter(EntryPoint::device_get, [&](DriverState& state) {
    if (device == nullptr) return abi::kInvalidValue;
    if (!state.IsDevice(ordinal)) return abi::kInvalidDevice;
    *device = ordinal;
    return abi::kSuccess;
  });
}

abi::Result DeviceGetCount(int* count) {
  return Enter(EntryPoint::device_get_count, [&](DriverState& state) {
    if (count == nullptr) return abi::kInvalidValue;
    *count = state.device_count();
    return abi::kSuccess;
  });
}

abi::Result DeviceGetName(char* name, int length, abi::Device device) {
  return Enter(EntryPoint::device_get_name, [&](DriverState& state) {
    if (name == nullptr || length <= 0) return abi::kInvalidValue;
    if (!state.IsDevice(device)) return abi::kInvalidDevice;
    std::snprintf(name, static_cast<size_t>(length), "%s", state.device(DeviceOrdinal(device)).name.c_str());
    return abi::kSuccess;
  });
}

abi::Result DeviceGetUuid(abi::Uuid* uuid, abi::Device device) {
  return Enter(EntryPoint::device_get_uuid, [&](DriverState& state) {
    if (uuid == nullptr) return abi::kInvalidValue;
    if (!state.IsDevice(device)) return abi::kInvalidDevice;
    abi::Uuid made{{'e', 'x', 'p', 'a', 'n', 's', 'e', ' ', 's', 'i', 'm'}};
    made.bytes[15] = static_cast<char>(device);
    *uuid = made;
    return abi::kSuccess;
  });
}

abi::Result DeviceTotalMem(size_t* bytes, abi::Device device) {
  return Enter(EntryPoint::device_total_mem, [&](DriverState& state) {
    if (bytes == nullptr) return abi::kInvalidValue;
    if (!state.IsDevice(device)) return abi::kInvalidDevice;
    *bytes = state.memory(DeviceOrdinal(device)).total().count();
    return abi::kSuccess;
  });
}

// What every simulated device answers unless its configuration says otherwise. Attributes not named are 0, among them
// those of what is not simulated, so that a program that asks first does without: pools, and handles to export.
int DefaultAttribute(int attribute) {
  switch (attribute) {
    case abi::kAttributeComputeCapabilityMajor:
      return 8;
    case abi::kAttributeUnifiedAddressing:
    case abi::kAttributeVirtualMemoryManagement:
      return 1;
    default:
      return 0;
  }
}

abi::Result DeviceGetAttribute(int* value, int attribute, abi::Device device) {
  constexpr int kAttributeMax = 148;  // of the CUDA 13.0 driver: a later attribute is unknown to it
  return Enter(EntryPoint::device_get_attribute, [&](DriverState& state) {
    if (value == nullptr || attribute <= 0 || attribute >= kAttributeMax) return abi::kInvalidValue;
    if (!state.IsDevice(device)) return abi::kInvalidDevice;
    const auto& overrides = state.device(DeviceOrdinal(device)).attributes;
    const auto it = overrides.find(attribute);
    *value = it != overrides.end() ? it->second : DefaultAttribute(attribute);
    return abi::kSuccess;
  });
}

abi::Result DeviceCanAccessPeer(int* can, abi::Device device, abi::Device peer) {
  return Enter(EntryPoint::device_can_access_peer, [&](DriverState& state) {
    if (can == nullptr) return abi::kInvalidValue;
    if (!state.IsDevice(device) || !state.IsDevice(peer)) return abi::kInvalidDevice;
    *can = 0;
    return abi::kSuccess;
  });
}

}  // namespace

void FillDeviceEntryPoints(Driver& driver) {
  driver.init = Init;
  driver.driver_get_version = DriverGetVersion;
  driver.get_error_name = GetErrorName;
  driver.get_error_string = GetErrorString;
  driver.device_get = DeviceGet;
  driver.device_get_count = DeviceGetCount;
  driver.device_get_name = DeviceGetName;
  driver.device_get_uuid = DeviceGetUuid;
  driver.device_total_mem = DeviceTotalMem;
  driver.device_get_attribute = DeviceGetAttribute;
  driver.device_can_access_peer = DeviceCanAccessPeer;
}

}  // namespace expanse::sim

// Primary contexts and the current context of the calling thread.

#include "vmm/sim/entry_points.h"

namespace expanse::sim {
namespace {

abi::Result PrimaryCtxRetain(abi::Context* context, abi::Device ordinal) {
  return Enter(EntryPoint::primary_ctx_retain, [&](DriverState& state) {
    if (context == nullptr) return abi::kInvalidValue;
    if (!state.IsDevice(ordinal)) return abi::kInvalidDevice;
    const DeviceOrdinal device(ordinal);
    const bool fresh = !state.contexts.IsLive(device);
    *context = state.contexts.Retain(device);
    if (fresh) state.timeline.AddContext(*context, device);
    return abi::kSuccess;
  });
}

abi::Result PrimaryCtxRelease(abi::Device ordinal) {
  return Enter(EntryPoint::primary_ctx_release, [&](DriverState& state) {
    if (!state.IsDevice(ordinal)) return abi::kInvalidDevice;
    const DeviceOrdinal device(ordinal);
    if (!state.contexts.Release(device)) return abi::kInvalidContext;
    if (!state.contexts.IsLive(device)) state.DestroyContext(device);
    return abi::kSuccess;
  });
}

abi::Result PrimaryCtxGetState(abi::Device ordinal, unsigned* flags, int* active) {
  return Enter(EntryPoint::primary_ctx_get_state, [&](DriverState& state) {
    if (flags == nullptr || active == nullptr) return abi::kInvalidValue;
    if (!state.IsDevice(ordinal)) return abi::kInvalidDevice;
    *flags = 0;
    *active = state.contexts.IsLive(DeviceOrdinal(ordinal)) ? 1 : 0;
    return abi::kSuccess;
  });
}

// Whether the value is a context that is alive.
bool IsLiveContext(const DriverState& state, abi::Context context) {
  const std::optional<DeviceOrdinal> device = state.contexts.DeviceOf(context);
  return device && state.contexts.IsLive(*device);
}

abi::Result CtxGetCurrent(abi::Context* context) {
  return Enter(EntryPoint::ctx_get_current, [&](DriverState& state) {
    if (context == nullptr) return abi::kInvalidValue;
    *context = state.thread().current();
    return abi::kSuccess;
  });
}

abi::Result CtxSetCurrent(abi::Context context) {
  return Enter(EntryPoint::ctx_set_current, [&](DriverState& state) {
    std::vector<abi::Context>& stack = state.thread().stack;
    if (context != nullptr && !IsLiveContext(state, context)) return abi::kInvalidContext;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return abi::kSuccess;
  });
}

abi::Result CtxPushCurrent(abi::Context context) {
  return Enter(EntryPoint::ctx_push_current, [&](DriverState& state) {
    if (!IsLiveContext(state, context)) return abi::kInvalidContext;
    state.thread().stack.push_back(context);
    return abi::kSuccess;
  });
}

abi::Result CtxPopCurrent(abi::Context* context) {
  return Enter(EntryPoint::ctx_pop_current, [&](DriverState& state) {
    std::vector<abi::Context>& stack = state.thread().stack;
    if (stack.empty()) return abi::kInvalidContext;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return abi::kSuccess;
  });
}

abi::Result CtxGetDevice(abi::Device* device) {
  return Enter(EntryPoint::ctx_get_device, [&](DriverState& state) {
    if (device == nullptr) return abi::kInvalidValue;
    DeviceOrdinal current;
    if (const abi::Result result = state.CurrentDevice(&current); result != abi::kSuccess) return result;
    *device = current.value();
    return abi::kSuccess;
  });
}

abi::Result CtxSynchronize() {
  return Enter(EntryPoint::ctx_synchronize, [&](DriverState& state) {
    DeviceOrdinal current;
    if (const abi::Result result = state.CurrentDevice(&current); result != abi::kSuccess) return result;
    state.timeline.SynchronizeContext(state.contexts.ContextOf(current));
    return state.AfterWait(current);
  });
}

}  // namespace

void FillContextEntryPoints(Driver& driver) {
  driver.primary_ctx_retain = PrimaryCtxRetain;
  driver.primary_ctx_release = PrimaryCtxRelease;
  driver.primary_ctx_get_state = PrimaryCtxGetState;
  driver.ctx_get_current = CtxGetCurrent;
  driver.ctx_set_current = CtxSetCurrent;
  driver.ctx_push_current = CtxPushCurrent;
  driver.ctx_pop_current = CtxPopCurrent;
  driver.ctx_get_device = CtxGetDevice;
  driver.ctx_synchronize = CtxSynchronize;
}

}  // namespace expanse::sim

// Streams and events. No stream ever captures: captures cannot be begun here.

#include "vmm/sim/entry_points.h"

namespace expanse::sim {
namespace {

abi::Result StreamCreate(abi::Stream* stream, unsigned flags) {
  return Enter(EntryPoint::stream_create, [&](DriverState& state) {
    DeviceOrdinal device;
    if (const abi::Result result = state.CurrentDevice(&device); result != abi::kSuccess) return result;
    if (stream == nullptr || (flags != abi::kStreamDefault && flags != abi::kStreamNonBlocking)) {
      return abi::kInvalidValue;
    }
    *stream = state.timeline.CreateStream(state.contexts.ContextOf(device), flags == abi::kStreamDefault);
    return abi::kSuccess;
  });
}

abi::Result StreamDestroy(abi::Stream stream) {
  return Enter(EntryPoint::stream_destroy, [&](DriverState& state) {
    return state.timeline.DestroyStream(stream) ? abi::kSuccess : abi::kInvalidHandle;
  });
}

abi::Result StreamSynchronize(abi::Stream stream) {
  return Enter(EntryPoint::stream_synchronize, [&](DriverState& state) {
    ResolvedStream resolved;
    if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
    state.timeline.SynchronizeStream(resolved.id);
    return state.AfterWait(resolved.info.device);
  });
}

abi::Result StreamQuery(abi::Stream stream) {
  return Enter(EntryPoint::stream_query, [&](DriverState& state) {
    ResolvedStream resolved;
    if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
    return state.timeline.QueryStream(resolved.id) ? abi::kSuccess : abi::kNotReady;
  });
}

abi::Result StreamGetId(abi::Stream stream, abi::u64* id) {
  return Enter(EntryPoint::stream_get_id, [&](DriverState& state) {
    if (id == nullptr) return abi::kInvalidValue;
    ResolvedStream resolved;
    if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
    *id = static_cast<abi::u64>(resolved.id);
    return abi::kSuccess;
  });
}

abi::Result StreamIsCapturing(abi::Stream stream, int* status) {
  return Enter(EntryPoint::stream_is_capturing, [&](DriverState& state) {
    if (status == nullptr) return abi::kInvalidValue;
    ResolvedStream resolved;
    if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
    *status = abi::kCaptureNone;
    return abi::kSuccess;
  });
}

// The other outputs mean something only while a stream captures.
abi::Result StreamGetCaptureInfo(abi::Stream stream, int* status, uint64_t*, abi::Graph*, const abi::GraphNode**,
                                 size_t*) {
  return Enter(EntryPoint::stream_get_capture_info, [&](DriverState& state) {
    if (status == nullptr) return abi::kInvalidValue;
    ResolvedStream resolved;
    if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
    *status = abi::kCaptureNone;
    return abi::kSuccess;
  });
}

abi::Result ThreadExchangeStreamCaptureMode(int* mode) {
  return Enter(EntryPoint::thread_exchange_stream_capture_mode, [&](DriverState& state) {
    if (mode == nullptr || *mode < abi::kCaptureGlobal || *mode > abi::kCaptureRelaxed) return abi::kInvalidValue;
    std::swap(*mode, state.thread().capture_mode);
    return abi::kSuccess;
  });
}

abi::Result EventCreate(abi::Event* event, unsigned flags) {
  return Enter(EntryPoint::event_create, [&](DriverState& state) {
    constexpr unsigned kKnown = abi::kEventBlockingSync | abi::kEventDisableTiming | abi::kEventInterprocess;
    DeviceOrdinal device;
    if (const abi::Result result = state.CurrentDevice(&device); result != abi::kSuccess) return result;
    if (event == nullptr || (flags & ~kKnown) != 0) return abi::kInvalidValue;
    if ((flags & abi::kEventInterprocess) != 0 && (flags & abi::kEventDisableTiming) == 0) return abi::kInvalidValue;
    *event = state.timeline.CreateEvent(state.contexts.ContextOf(device));
    return abi::kSuccess;
  });
}

// The device of an event; 400 if there is no such event, or its context's sticky error.
abi::Result ResolveEvent(const DriverState& state, abi::Event event, DeviceOrdinal* device) {
  const std::optional<abi::Context> context = state.timeline.FindEvent(event);
  if (!context) return abi::kInvalidHandle;
  *device = *state.contexts.DeviceOf(*context);
  return state.contexts.sticky(*device);
}

abi::Result EventDestroy(abi::Event event) {
  return Enter(EntryPoint::event_destroy, [&](DriverState& state) {
    return state.timeline.DestroyEvent(event) ? abi::kSuccess : abi::kInvalidHandle;
  });
}

abi::Result EventRecord(abi::Event event, abi::Stream stream) {
  return Enter(EntryPoint::event_record, [&](DriverState& state) {
    DeviceOrdinal current, device;
    if (const abi::Result result = state.CurrentDevice(&current); result != abi::kSuccess) return result;
    if (const abi::Result result = ResolveEvent(state, event, &device); result != abi::kSuccess) return result;
    ResolvedStream resolved;
    if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
    if (resolved.info.device != device) return abi::kInvalidHandle;
    state.timeline.Record(event, resolved.id);
    return abi::kSuccess;
  });
}

abi::Result StreamWaitEvent(abi::Stream stream, abi::Event event, unsigned flags) {
  return Enter(EntryPoint::stream_wait_event, [&](DriverState& state) {
    constexpr unsigned kExternal = 1;  // CU_EVENT_WAIT_EXTERNAL, which means something in captures only
    DeviceOrdinal current, device;
    if (const abi::Result result = state.CurrentDevice(&current); result != abi::kSuccess) return result;
    if ((flags & ~kExternal) != 0) return abi::kInvalidValue;
    ResolvedStream resolved;
    if (const abi::Result result = ResolveStream(state, stream, &resolved); result != abi::kSuccess) return result;
    if (const abi::Result result = ResolveEvent(state, event, &device); result != abi::kSuccess) return result;
    state.timeline.Wait(resolved.id, event);
    return abi::kSuccess;
  });
}

abi::Result EventQuery(abi::Event event) {
  return Enter(EntryPoint::event_query, [&](DriverState& state) {
    DeviceOrdinal device;
    if (const abi::Result result = ResolveEvent(state, event, &device); result != abi::kSuccess) return result;
    return state.timeline.QueryEvent(event) ? abi::kSuccess : abi::kNotReady;
  });
}

abi::Result EventSynchronize(abi::Event event) {
  return Enter(EntryPoint::event_synchronize, [&](DriverState& state) {
    DeviceOrdinal device;
    if (const abi::Result result = ResolveEvent(state, event, &device); result != abi::kSuccess) return result;
    state.timeline.SynchronizeEvent(event);
    return state.AfterWait(device);
  });
}

}  // namespace

void FillStreamEntryPoints(Driver& driver) {
  driver.stream_create = StreamCreate;
  driver.stream_destroy = StreamDestroy;
  driver.stream_synchronize = StreamSynchronize;
  driver.stream_query = StreamQuery;
  driver.stream_wait_event = StreamWaitEvent;
  driver.stream_get_id = StreamGetId;
  driver.stream_is_capturing = StreamIsCapturing;
  driver.stream_get_capture_info = StreamGetCaptureInfo;
  driver.thread_exchange_stream_capture_mode = ThreadExchangeStreamCaptureMode;
  driver.event_create = EventCreate;
  driver.event_destroy = EventDestroy;
  driver.event_record = EventRecord;
  driver.event_query = EventQuery;
  driver.event_synchronize = EventSynchronize;
}

}  // namespace expanse::sim

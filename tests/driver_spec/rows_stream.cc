// Streams, events, capture queries.

#include <chrono>

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;
using std::chrono_literals::operator""ms;

const abi::Stream kLegacy = reinterpret_cast<abi::Stream>(uintptr_t{1});
const abi::Stream kPerThread = reinterpret_cast<abi::Stream>(uintptr_t{2});

// Queues a second of work, which only the simulator can without a kernel.
void Work(World& w) { w.Need(w.simulator->Launch(StreamHandle(w.stream), 1000ms, {}), "Launch"); }
// Lets that second pass.
void Finish(World& w) { w.simulator->Advance(2000ms); }

int CreateStream(World& w, unsigned flags) {
  abi::Stream stream = nullptr;
  const int result = w.d.stream_create(&stream, flags);
  if (result == abi::kSuccess) w.Need(w.d.stream_destroy(stream), "cuStreamDestroy");
  return result;
}

int CreateEvent(World& w, unsigned flags) {
  abi::Event event = nullptr;
  const int result = w.d.event_create(&event, flags);
  if (result == abi::kSuccess) w.Need(w.d.event_destroy(event), "cuEventDestroy");
  return result;
}

void AddStreamOnlyRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, E entry_point, Grade grade, std::vector<int> codes,
                     std::function<int(World&)> call) {
    rows.push_back({id, entry_point, grade, std::move(codes), std::move(call)});
  };
  add("create_stream.default", E::stream_create, G::kDocumented, {0}, [](World& w) { return CreateStream(w, 0); });
  add("create_stream.non_blocking", E::stream_create, G::kDocumented, {0}, [](World& w) { return CreateStream(w, 1); });
  add("create_stream.flags_2", E::stream_create, G::kDocumented, {1}, [](World& w) { return CreateStream(w, 2); });
  add("create_stream.output_null", E::stream_create, G::kDocumented, {1},
      [](World& w) { return w.d.stream_create(nullptr, 0); });
  add("create_stream.without_context", E::stream_create, G::kDocumented, {201},
      [](World& w) { return w.WithoutContext([&] { return CreateStream(w, 0); }); });
  add("destroy_stream.null", E::stream_destroy, G::kAssumed, {400},
      [](World& w) { return w.d.stream_destroy(nullptr); });
  add("destroy_stream.legacy", E::stream_destroy, G::kAssumed, {400},
      [](World& w) { return w.d.stream_destroy(kLegacy); });
  rows.push_back(Row{
      "destroy_stream.with_work", E::stream_destroy, G::kDocumented, {0}, [](World& w) {
        abi::Stream stream = nullptr;
        w.Need(w.d.stream_create(&stream, abi::kStreamNonBlocking), "cuStreamCreate");
        w.Need(w.simulator->Launch(StreamHandle(stream), 1000ms, {}), "Launch");
        const int result = w.d.stream_destroy(stream);
        w.NeedThat(!w.simulator->Idle(), "the work still queued");
        Finish(w);
        return result;
      }}.SimulatorOnly());
  const struct {
    const char* name;
    abi::Stream stream;
  } defaults[] = {{"null", nullptr}, {"legacy", kLegacy}, {"per_thread", kPerThread}};
  for (const auto& which : defaults) {
    const abi::Stream stream = which.stream;
    rows.push_back({std::string("synchronize_stream.") + which.name,
                    E::stream_synchronize,
                    G::kDocumented,
                    {0},
                    [stream](World& w) { return w.d.stream_synchronize(stream); }});
    rows.push_back(
        {std::string("query_stream.") + which.name, E::stream_query, G::kDocumented, {0}, [stream](World& w) {
           return w.d.stream_query(stream);
         }});
  }
  add("query_stream.idle", E::stream_query, G::kDocumented, {0}, [](World& w) { return w.d.stream_query(w.stream); });
  rows.push_back(Row{
      "query_stream.busy", E::stream_query, G::kDocumented, {600}, [](World& w) {
        Work(w);
        const int result = w.d.stream_query(w.stream);
        Finish(w);
        return result;
      }}.SimulatorOnly());
  rows.push_back(Row{
      "synchronize_stream.waits", E::stream_synchronize, G::kDocumented, {0}, [](World& w) {
        Work(w);
        const int result = w.d.stream_synchronize(w.stream);
        w.Need(w.d.stream_query(w.stream), "cuStreamQuery afterwards");
        return result;
      }}.SimulatorOnly());
  add("stream_id.differs", E::stream_get_id, G::kDocumented, {0}, [](World& w) {
    abi::Stream other = nullptr;
    w.Need(w.d.stream_create(&other, 0), "cuStreamCreate");
    abi::u64 first = 0;
    abi::u64 second = 0;
    const int result = w.d.stream_get_id(w.stream, &first);
    w.Need(w.d.stream_get_id(other, &second), "cuStreamGetId");
    w.NeedThat(first != second, "different ids");
    w.Need(w.d.stream_destroy(other), "cuStreamDestroy");
    return result;
  });
  add("capturing.not", E::stream_is_capturing, G::kDocumented, {0}, [](World& w) {
    int status = -1;
    const int result = w.d.stream_is_capturing(w.stream, &status);
    w.NeedThat(status == abi::kCaptureNone, "no capture");
    return result;
  });
  add("capture_info.not", E::stream_get_capture_info, G::kDocumented, {0}, [](World& w) {
    int status = -1;
    const int result = w.d.stream_get_capture_info(w.stream, &status, nullptr, nullptr, nullptr, nullptr);
    w.NeedThat(status == abi::kCaptureNone, "no capture");
    return result;
  });
  add("capture_mode.swaps", E::thread_exchange_stream_capture_mode, G::kDocumented, {0}, [](World& w) {
    int mode = abi::kCaptureRelaxed;
    const int result = w.d.thread_exchange_stream_capture_mode(&mode);
    w.NeedThat(mode == abi::kCaptureGlobal, "the global mode before");
    w.Need(w.d.thread_exchange_stream_capture_mode(&mode), "cuThreadExchangeStreamCaptureMode back");
    w.NeedThat(mode == abi::kCaptureRelaxed, "the relaxed mode in between");
    return result;
  });
  add("capture_mode.unknown", E::thread_exchange_stream_capture_mode, G::kDocumented, {1}, [](World& w) {
    int mode = 3;
    return w.d.thread_exchange_stream_capture_mode(&mode);
  });
}

void AddEventRows(std::vector<Row>& rows) {
  auto add = [&rows](const char* id, E entry_point, Grade grade, std::vector<int> codes,
                     std::function<int(World&)> call) {
    rows.push_back({id, entry_point, grade, std::move(codes), std::move(call)});
  };
  add("create_event.default", E::event_create, G::kDocumented, {0}, [](World& w) { return CreateEvent(w, 0); });
  add("create_event.all_flags", E::event_create, G::kDocumented, {0}, [](World& w) { return CreateEvent(w, 7); });
  add("create_event.unknown_flag", E::event_create, G::kDocumented, {1}, [](World& w) { return CreateEvent(w, 8); });
  add("create_event.interprocess_with_timing", E::event_create, G::kDocumented, {1},
      [](World& w) { return CreateEvent(w, abi::kEventInterprocess); });
  add("create_event.without_context", E::event_create, G::kDocumented, {201},
      [](World& w) { return w.WithoutContext([&] { return CreateEvent(w, 0); }); });
  add("record_event.idle_stream", E::event_record, G::kDocumented, {0}, [](World& w) {
    const int result = w.d.event_record(w.event, w.stream);
    w.Need(w.d.event_synchronize(w.event), "cuEventSynchronize");
    w.Need(w.d.event_query(w.event), "cuEventQuery");
    return result;
  });
  rows.push_back(Row{
      "record_event.of_another_context", E::event_record, G::kDocumented, {400}, [](World& w) {
        abi::Context other = nullptr;
        abi::Stream stream = nullptr;
        abi::Context top = nullptr;
        w.Need(w.d.primary_ctx_retain(&other, 1), "cuDevicePrimaryCtxRetain");
        w.Need(w.d.ctx_push_current(other), "cuCtxPushCurrent");
        w.Need(w.d.stream_create(&stream, 0), "cuStreamCreate");
        const int result = w.d.event_record(w.event, stream);
        w.Need(w.d.stream_destroy(stream), "cuStreamDestroy");
        w.Need(w.d.ctx_pop_current(&top), "cuCtxPopCurrent");
        w.Need(w.d.primary_ctx_release(1), "cuDevicePrimaryCtxRelease");
        return result;
      }}.TwoDevices());
  rows.push_back(Row{
      "record_event.overwrites", E::event_record, G::kDocumented, {0}, [](World& w) {
        Work(w);
        w.Need(w.d.event_record(w.event, w.stream), "cuEventRecord behind work");
        abi::Stream idle = nullptr;
        w.Need(w.d.stream_create(&idle, abi::kStreamNonBlocking), "cuStreamCreate");
        const int result = w.d.event_record(w.event, idle);
        w.Need(w.d.event_query(w.event), "cuEventQuery, for only the second record counts");
        w.Need(w.d.stream_destroy(idle), "cuStreamDestroy");
        Finish(w);
        return result;
      }}.SimulatorOnly());
  add("query_event.never_recorded", E::event_query, G::kDocumented, {0},
      [](World& w) { return w.d.event_query(w.event); });
  rows.push_back(Row{
      "query_event.pending", E::event_query, G::kDocumented, {600}, [](World& w) {
        Work(w);
        w.Need(w.d.event_record(w.event, w.stream), "cuEventRecord");
        const int result = w.d.event_query(w.event);
        Finish(w);
        w.Need(w.d.event_query(w.event), "cuEventQuery when the work is done");
        return result;
      }}.SimulatorOnly());
  add("synchronize_event.never_recorded", E::event_synchronize, G::kDocumented, {0},
      [](World& w) { return w.d.event_synchronize(w.event); });
  rows.push_back(Row{
      "synchronize_event.waits", E::event_synchronize, G::kDocumented, {0}, [](World& w) {
        Work(w);
        w.Need(w.d.event_record(w.event, w.stream), "cuEventRecord");
        const int result = w.d.event_synchronize(w.event);
        w.Need(w.d.event_query(w.event), "cuEventQuery afterwards");
        return result;
      }}.SimulatorOnly());
  rows.push_back(Row{
      "destroy_event.pending", E::event_destroy, G::kDocumented, {0}, [](World& w) {
        abi::Event event = nullptr;
        w.Need(w.d.event_create(&event, abi::kEventDisableTiming), "cuEventCreate");
        Work(w);
        w.Need(w.d.event_record(event, w.stream), "cuEventRecord");
        const int result = w.d.event_destroy(event);
        Finish(w);
        return result;
      }}.SimulatorOnly());
  add("wait_event.never_recorded", E::stream_wait_event, G::kDocumented, {0}, [](World& w) {
    const int result = w.d.stream_wait_event(w.stream, w.event, 0);
    w.Need(w.d.stream_synchronize(w.stream), "cuStreamSynchronize");
    return result;
  });
  add("wait_event.null", E::stream_wait_event, G::kDocumented, {400},
      [](World& w) { return w.d.stream_wait_event(w.stream, nullptr, 0); });
  rows.push_back(Row{
      "wait_event.most_recent_record_at_the_call", E::stream_wait_event, G::kDocumented, {0}, [](World& w) {
        abi::Stream other = nullptr;
        w.Need(w.d.stream_create(&other, abi::kStreamNonBlocking), "cuStreamCreate");
        w.Need(w.d.event_record(w.event, w.stream), "cuEventRecord of nothing");
        Work(w);
        const int result = w.d.stream_wait_event(other, w.event, 0);
        w.Need(w.d.stream_query(other), "cuStreamQuery: nothing to wait for");
        w.Need(w.d.event_record(w.event, w.stream), "cuEventRecord behind work");
        w.Need(w.d.stream_query(other), "cuStreamQuery: a later record does not count");
        w.Need(w.d.stream_wait_event(other, w.event, 0), "cuStreamWaitEvent");
        w.NeedThat(w.d.stream_query(other) == abi::kNotReady, "a wait for the work");
        Finish(w);
        w.Need(w.d.stream_destroy(other), "cuStreamDestroy");
        return result;
      }}.SimulatorOnly());
}

}  // namespace

void AddStreamRows(std::vector<Row>& rows) {
  AddStreamOnlyRows(rows);
  AddEventRows(rows);
}

}  // namespace expanse::driver_spec

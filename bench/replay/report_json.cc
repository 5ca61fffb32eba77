#include "bench/replay/report_json.h"

#include <optional>
#include <string>
#include <type_traits>

#include "nlohmann/json.hpp"

namespace expanse::bench {
namespace {

using Json = nlohmann::ordered_json;

Json Value(Bytes size) { return size.count(); }
template <typename T>
Json Value(const T& value) {
  return value;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Value(*value) : Json(nullptr);
}

Json TraceJson(const Trace& trace) {
  const TraceSummary summary = Summarize(trace);
  Json json;
  json["name"] = trace.name;
  json["events"] = summary.events;
  json["allocations"] = summary.allocations;
  json["frees"] = summary.frees;
  json["marks"] = summary.marks;
  json["streams"] = summary.streams;
  json["peak_live_bytes"] = summary.peak_live.count();
  json["peak_allocated_bytes"] = summary.peak_allocated.count();
  json["peak_event"] = summary.peak_event;
  json["largest_block_bytes"] = summary.largest_block.count();
  json["live_blocks_at_end"] = summary.live_blocks_at_end;
  json["live_bytes_at_end"] = summary.live_at_end.count();
  return json;
}

Json DeviceJson(const ReportDevice& device) {
  Json json;
  json["kind"] = device.simulated ? "simulated" : "cuda";
  json["name"] = device.name;
  json["costs"] = device.simulated ? Json(device.costs) : Json(nullptr);
  return json;
}

Json DriverCallsJson(const ReplayResult& result) {
  Json json = Json::object();
  for (int i = 0; i < kEntryPointCount; ++i) {
    if (result.driver_calls[i] > 0) json[std::string(SymbolName(static_cast<EntryPoint>(i)))] = result.driver_calls[i];
  }
  return json;
}

Json ResultJson(const ReplayResult& result) {
  Json json;
  json["allocator"] = result.allocator;
  json["capacity_bytes"] = result.capacity.count();
  json["events"] = result.events;
  json["peak_live_bytes"] = result.peak_live.count();
  json["peak_allocated_bytes"] = result.peak_allocated.count();
  json["peak_pending_bytes"] = result.peak_pending.count();
  json["peak_reserved_bytes"] = result.peak_reserved.count();
  json["out_of_memory"] = result.out_of_memory;
  json["failed_at_event"] = OrNull(result.failed_at_event);
  json["failed_request_bytes"] = OrNull(result.failed_request);
  json["failed_in_mark"] = OrNull(result.failed_in_mark);
  json["unused_at_failure_bytes"] = OrNull(result.unused_at_failure);
  json["failure_message"] = result.failure_message.empty() ? Json(nullptr) : Json(result.failure_message);
  json["failed_allocations"] = result.failed_allocations;
  json["driver_calls"] = DriverCallsJson(result);
  json["driver_calls_per_mark"] = Json::array();
  json["marks"] = Json::array();
  for (const MarkFigures& mark : result.marks) {
    json["driver_calls_per_mark"].push_back(mark.driver_calls);
    Json details;
    details["label"] = mark.label;
    details["event"] = mark.event;
    details["driver_calls"] = mark.driver_calls;
    details["modelled_driver_us"] = OrNull(mark.modelled_driver_us);
    json["marks"].push_back(std::move(details));
  }
  json["modelled_driver_us"] = OrNull(result.modelled_driver_us);
  json["measured_driver_us"] = OrNull(result.measured_driver_us);
  json["stall_us"] = OrNull(result.stall_us);
  json["host_ns_per_pair"] = OrNull(result.host_ns_per_pair);
  json["chunks_created"] = OrNull(result.chunks_created);
  json["chunks_moved"] = OrNull(result.chunks_moved);
  json["address_space_peak_bytes"] = OrNull(result.address_space_peak);
  json["hazards"] = OrNull(result.hazards);
  json["hazard_descriptions"] = result.hazard_descriptions;
  json["smallest_capacity_bytes"] = OrNull(result.smallest_capacity);
  return json;
}

}  // namespace

std::string ReportJson(const Trace& trace, const ReportDevice& device, absl::Span<const ReplayResult> results) {
  Json json;
  json["trace"] = TraceJson(trace);
  json["device"] = DeviceJson(device);
  json["results"] = Json::array();
  for (const ReplayResult& result : results) json["results"].push_back(ResultJson(result));
  // A trace's name and labels may hold any bytes: what is no UTF-8 is replaced, not refused.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace expanse::bench

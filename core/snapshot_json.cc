// ToJson of snapshot.h. docs/snapshot.schema.json is the schema.

#include <optional>
#include <string_view>
#include <utility>

#include "core/json_writer.h"
#include "core/snapshot.h"

namespace expanse {
namespace {

std::optional<uint64_t> Count(const std::optional<Bytes>& size) {
  if (!size) return std::nullopt;
  return size->count();
}

void Write(JsonWriter& json, std::string_view name, const Figure& figure) {
  json.Key(name);
  json.BeginObject();
  json.Add("current_bytes", figure.current.count());
  json.Add("peak_bytes", figure.peak.count());
  json.Add("total_bytes", figure.total.count());
  json.EndObject();
}

void Write(JsonWriter& json, std::string_view name, const Stalls& stalls) {
  json.Key(name);
  json.BeginObject();
  json.Add("count", stalls.count);
  json.Add("ns", static_cast<uint64_t>(stalls.time.count()));
  json.EndObject();
}

void Write(JsonWriter& json, const RungCounts& rungs) {
  json.Key("rungs");
  json.BeginObject();
  json.Add("collected", rungs.collected);
  json.Add("moved", rungs.moved);
  json.Add("created", rungs.created);
  json.Add("other_class", rungs.other_class);
  json.Add("others_asked", rungs.others_asked);
  json.Add("callbacks_asked", rungs.callbacks_asked);
  json.Add("waited", rungs.waited);
  json.Add("synchronized", rungs.synchronized);
  json.Add("failed", rungs.failed);
  json.EndObject();
}

void Write(JsonWriter& json, const MoveAllowance& moves) {
  json.Key("unforced_moves");
  json.BeginObject();
  json.Add("spent_ns", static_cast<uint64_t>(moves.spent.count()));
  json.Add("allowed_ns", static_cast<uint64_t>(moves.allowed.count()));
  json.EndObject();
}

void Write(JsonWriter& json, const ProcessBudgets& process) {
  json.Key("process");
  json.BeginObject();
  json.Add("handles_taken", process.handles_taken);
  json.Add("handles_limit", process.handles_limit);
  json.Add("addresses_taken_bytes", process.addresses_taken.count());
  json.Add("addresses_limit_bytes", process.addresses_limit.count());
  json.EndObject();
}

void Write(JsonWriter& json, const Stats& stats) {
  json.Key("stats");
  json.BeginObject();
  Write(json, "live", stats.live);
  Write(json, "allocated", stats.allocated);
  Write(json, "pending", stats.pending);
  Write(json, "reserved", stats.reserved);
  Write(json, "idle", stats.idle);
  Write(json, "pinned", stats.pinned);
  Write(json, "prewarmed", stats.prewarmed);
  Write(json, "address_space", stats.address_space);
  json.Add("allocations", stats.allocations);
  json.Add("frees", stats.frees);
  json.Add("failed_allocations", stats.failed_allocations);
  json.Add("live_blocks", stats.live_blocks);
  json.Add("chunks_created", stats.chunks_created);
  json.Add("chunks_prewarmed", stats.chunks_prewarmed);
  json.Add("chunks_moved", stats.chunks_moved);
  json.Add("chunks_refilled", stats.chunks_refilled);
  json.Add("chunks_released", stats.chunks_released);
  json.Add("chunks_quarantined", stats.chunks_quarantined);
  json.Add("growths", stats.growths);
  Write(json, stats.rungs);
  Write(json, stats.unforced_moves);
  Write(json, "gpu_stalls", stats.gpu_stalls);
  Write(json, "lock_stalls", stats.lock_stalls);
  Write(json, "prewarm_stalls", stats.prewarm_stalls);
  json.Add("driver_calls", stats.driver_calls);
  json.Add("driver_ns", static_cast<uint64_t>(stats.driver_time.count()));
  Write(json, stats.process);
  json.EndObject();
}

const char* Name(SnapshotBlockState state) {
  switch (state) {
    case SnapshotBlockState::kFree:
      return "free";
    case SnapshotBlockState::kLive:
      return "live";
    case SnapshotBlockState::kPending:
      return "pending";
    case SnapshotBlockState::kQuarantined:
      return "quarantined";
  }
  return "";
}

void Write(JsonWriter& json, const SnapshotSegment& segment) {
  json.BeginObject();
  json.Add("address", segment.address.value());
  json.Add("bytes", segment.size.count());
  json.Add("stream", uint64_t{segment.stream});
  json.Add("pool", segment.pool);
  json.Add("size_class", static_cast<uint64_t>(segment.size_class));
  json.Key("blocks");
  json.BeginArray();
  for (const SnapshotBlock& block : segment.blocks) {
    json.BeginObject();
    json.Add("address", block.address.value());
    json.Add("bytes", block.size.count());
    json.Add("requested_bytes", block.requested.count());
    json.Add("state", Name(block.state));
    json.EndObject();
  }
  json.EndArray();
  json.Key("chunks");
  json.BeginArray();
  for (const SnapshotChunk& chunk : segment.chunks) {
    json.BeginObject();
    json.Add("number", uint64_t{chunk.number});
    json.Add("address", chunk.address.value());
    json.Add("bytes", chunk.size.count());
    json.AddBool("idle", chunk.idle);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void WriteBlockEvent(JsonWriter& json, const SnapshotEvent& event, std::string_view kind) {
  json.Add("kind", kind);
  json.Add("address", event.address.value());
  json.Add("bytes", event.bytes.count());
  json.Add("stream", uint64_t{event.stream});
}

// Each kind has the fields that mean something for it.
void Write(JsonWriter& json, const SnapshotEvent& event) {
  json.BeginObject();
  switch (event.kind) {
    case SnapshotEventKind::kAllocate:
      WriteBlockEvent(json, event, "allocate");
      break;
    case SnapshotEventKind::kFree:
      WriteBlockEvent(json, event, "free");
      json.Add("other", uint64_t{event.other});
      break;
    case SnapshotEventKind::kFreePending:
      WriteBlockEvent(json, event, "free_pending");
      json.Add("other", uint64_t{event.other});
      break;
    case SnapshotEventKind::kSettle:
      WriteBlockEvent(json, event, "settle");
      break;
    case SnapshotEventKind::kUse:
      WriteBlockEvent(json, event, "use");
      json.Add("other", uint64_t{event.other});
      break;
    case SnapshotEventKind::kMark:
      json.Add("kind", "mark");
      json.Add("label", event.label);
      break;
    case SnapshotEventKind::kOutOfMemory:
      json.Add("kind", "out_of_memory");
      json.Add("bytes", event.bytes.count());
      json.Add("device_free_bytes", event.device_free.count());
      json.Add("stream", uint64_t{event.stream});
      break;
    case SnapshotEventKind::kMap:
      WriteBlockEvent(json, event, "map");
      break;
    case SnapshotEventKind::kUnmap:
      WriteBlockEvent(json, event, "unmap");
      break;
  }
  json.Add("time_us", event.time_us);
  json.EndObject();
}

}  // namespace

std::string ToJson(const Snapshot& snapshot) {
  JsonWriter json;
  json.BeginObject();
  json.Add("format", Snapshot::kFormat);
  json.Add("time_us", snapshot.time_us);
  json.Key("device");
  json.BeginObject();
  json.Add("ordinal", static_cast<uint64_t>(snapshot.device));
  json.Add("total_bytes", snapshot.device_memory.count());
  json.EndObject();
  json.Add("limit_bytes", Count(snapshot.limit));
  json.Add("spare_chunks", snapshot.spare_chunks);
  Write(json, snapshot.stats);
  json.Key("streams");
  json.BeginArray();
  for (const SnapshotStream& stream : snapshot.streams) {
    json.BeginObject();
    json.Add("number", uint64_t{stream.number});
    json.Add("handle", stream.handle);
    json.Add("thread", stream.thread);
    json.AddBool("destroyed", stream.destroyed);
    json.EndObject();
  }
  json.EndArray();
  json.Key("pools");
  json.BeginArray();
  for (const SnapshotPool& pool : snapshot.pools) {
    json.BeginObject();
    json.Add("number", pool.number);
    json.Add("name", pool.name);
    json.Add("limit_bytes", Count(pool.limit));
    json.AddBool("retired", pool.retired);
    json.EndObject();
  }
  json.EndArray();
  json.Key("segments");
  json.BeginArray();
  for (const SnapshotSegment& segment : snapshot.segments) Write(json, segment);
  json.EndArray();
  json.Key("events");
  json.BeginArray();
  for (const SnapshotEvent& event : snapshot.events) Write(json, event);
  json.EndArray();
  json.EndObject();
  return std::move(json).Finish();
}

}  // namespace expanse

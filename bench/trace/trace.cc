#include "bench/trace/trace.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace expanse::bench {
namespace {

absl::Status BadEvent(const Trace& trace, size_t event, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(trace.name, ": event ", event, ": ", problem));
}

}  // namespace

absl::Status Validate(const Trace& trace) {
  constexpr uint8_t kUnborn = 0, kLive = 1, kFreed = 2;
  if (trace.ids.size() > std::numeric_limits<uint32_t>::max() ||
      trace.labels.size() > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(trace.name, ": more than 2^32 - 1 blocks or marks"));
  }
  if (!trace.extra_columns.empty() && trace.extra_columns.size() != trace.events.size()) {
    return absl::InvalidArgumentError(absl::StrCat(trace.name, ": extra columns for ", trace.extra_columns.size(),
                                                   " events, expected none or ", trace.events.size()));
  }
  std::vector<uint8_t> state(trace.ids.size(), kUnborn);
  std::vector<Bytes> size(trace.ids.size());
  absl::flat_hash_set<uint64_t> live_ids;
  uint32_t blocks = 0;
  uint32_t marks = 0;
  Bytes live;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    if (e.stream < 0) return BadEvent(trace, i, absl::StrCat("stream ", e.stream, ", expected 0 or more"));
    switch (e.op) {
      case TraceOp::kAllocate:
        if (e.block != blocks || blocks == trace.block_count()) {
          return BadEvent(
              trace, i, absl::StrCat("allocates block ", e.block, ", expected ", blocks, " of ", trace.block_count()));
        }
        if (e.value == 0) return BadEvent(trace, i, "allocates 0 bytes, expected at least 1");
        if (Bytes(e.value) > kMaxLiveBytes - live || RoundUp(Bytes(e.value), kTraceRounding) > kMaxLiveBytes - live) {
          return BadEvent(trace, i,
                          absl::StrCat("allocates ", e.value, " bytes with ", live.count(), " live, expected at most ",
                                       kMaxLiveBytes.count(), " in all"));
        }
        if (!live_ids.insert(trace.ids[e.block]).second) {
          return BadEvent(trace, i, absl::StrCat("allocates id ", trace.ids[e.block], ", which is live already"));
        }
        ++blocks;
        state[e.block] = kLive;
        size[e.block] = RoundUp(Bytes(e.value), kTraceRounding);
        live += size[e.block];
        break;
      case TraceOp::kFree:
      case TraceOp::kUse:
      case TraceOp::kWork:
        if (e.block >= state.size() || state[e.block] != kLive) {
          return BadEvent(trace, i, absl::StrCat("names block ", e.block, ", which is not live"));
        }
        if (e.op == TraceOp::kFree) {
          state[e.block] = kFreed;
          live_ids.erase(trace.ids[e.block]);
          live -= size[e.block];
        }
        break;
      case TraceOp::kMark:
        if (e.block != marks || marks == trace.labels.size()) {
          return BadEvent(trace, i, absl::StrCat("mark ", e.block, ", expected ", marks, " of ", trace.labels.size()));
        }
        ++marks;
        break;
      case TraceOp::kWait:
        break;
      default:
        return BadEvent(trace, i, absl::StrCat("operation ", static_cast<int>(e.op), " is unknown"));
    }
  }
  if (blocks != trace.block_count() || marks != trace.labels.size()) {
    return absl::InvalidArgumentError(absl::StrCat(trace.name, ": ", blocks, " blocks and ", marks,
                                                   " marks in events, expected ", trace.ids.size(), " and ",
                                                   trace.labels.size()));
  }
  return absl::OkStatus();
}

TraceSummary Summarize(const Trace& trace) {
  TraceSummary summary;
  std::vector<Bytes> size(trace.ids.size());
  absl::flat_hash_set<int32_t> streams;
  Bytes live;
  Bytes allocated;
  for (const TraceEvent& e : trace.events) {
    switch (e.op) {
      case TraceOp::kAllocate:
        size[e.block] = Bytes(e.value);
        streams.insert(e.stream);
        live += size[e.block];
        allocated += RoundUp(size[e.block], kTraceRounding);
        if (live > summary.peak_live) {
          summary.peak_live = live;
          summary.peak_event = summary.events;
        }
        summary.peak_allocated = std::max(summary.peak_allocated, allocated);
        summary.largest_block = std::max(summary.largest_block, size[e.block]);
        ++summary.allocations;
        ++summary.events;
        break;
      case TraceOp::kFree:
        live -= size[e.block];
        allocated -= RoundUp(size[e.block], kTraceRounding);
        ++summary.frees;
        ++summary.events;
        break;
      case TraceOp::kMark:
        ++summary.marks;
        break;
      case TraceOp::kUse:
        ++summary.uses;
        break;
      case TraceOp::kWork:
        ++summary.work;
        break;
      case TraceOp::kWait:
        ++summary.waits;
        break;
    }
  }
  summary.streams = streams.size();
  summary.live_blocks_at_end = summary.allocations - summary.frees;
  summary.live_at_end = live;
  return summary;
}

}  // namespace expanse::bench

// An allocation trace in memory. docs/trace_format.md specifies the text format that this mirrors.

#ifndef EXPANSE_BENCH_TRACE_TRACE_H_
#define EXPANSE_BENCH_TRACE_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse::bench {

enum class TraceOp : uint8_t {
  kAllocate,  // a,<id>,<bytes>,<stream>
  kFree,      // f,<id>,,<stream>           ordered after that stream's work
  kMark,      // m,<label>,,
  kUse,       // u,<id>,,<stream>           use on another stream
  kWork,      // k,<id>,<microseconds>,<stream>
  kWait,      // w,,,<stream>               the host waits for the stream
};

struct TraceEvent {
  TraceOp op;
  int32_t stream = 0;  // small integers, 0 the default stream
  uint32_t block = 0;  // index of the block from 0 in order of allocation; for kMark the index into `labels`
  uint64_t value = 0;  // kAllocate: bytes asked for; kWork: microseconds

  friend bool operator==(const TraceEvent& a, const TraceEvent& b) {
    return a.op == b.op && a.stream == b.stream && a.block == b.block && a.value == b.value;
  }
  friend bool operator!=(const TraceEvent& a, const TraceEvent& b) { return !(a == b); }
};

// A well-formed trace: every free, use and work names a live block. Readers guarantee it; Validate checks it.
struct Trace {
  std::string name;  // the file it came from, or what generated it
  std::vector<TraceEvent> events;
  std::vector<std::string> labels;  // of marks, in order
  std::vector<uint64_t> ids;        // by block: the id that the file gave it
  // Columns after the fourth, kept as read: by event index, each beginning with a comma. Empty where there are none.
  std::vector<std::string> extra_columns;
  std::vector<std::string> extra_header;

  [[nodiscard]] uint32_t block_count() const { return static_cast<uint32_t>(ids.size()); }
};

// What a trace holds, independent of any allocator.
struct TraceSummary {
  uint64_t events = 0;  // allocations and frees
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t marks = 0;
  uint64_t uses = 0;
  uint64_t work = 0;
  uint64_t waits = 0;
  uint64_t streams = 0;     // distinct streams of allocations
  Bytes peak_live;          // bytes asked for
  Bytes peak_allocated;     // each block rounded up to 512 bytes
  uint64_t peak_event = 0;  // 0-based among allocations and frees
  Bytes largest_block;
  uint64_t live_blocks_at_end = 0;
  Bytes live_at_end;
};

// PyTorch's allocator, and ours, hand out multiples of this: what peak_allocated rounds to.
inline constexpr Bytes kTraceRounding(512);

// The most that may be live at once, each block rounded up; keeps every sum of sizes far from wrapping.
inline constexpr Bytes kMaxLiveBytes(uint64_t{1} << 62);

// OK when the trace is well-formed: blocks are numbered from 0 in order of allocation, marks in order of labels; every
// free, use and work names a live block; ids are unique among live blocks; sizes are at least 1, streams not negative;
// at most kMaxLiveBytes are live. Otherwise kInvalidArgument naming the event (0-based) and the value. O(events).
[[nodiscard]] absl::Status Validate(const Trace& trace);

// `trace` must be well-formed. O(events).
[[nodiscard]] TraceSummary Summarize(const Trace& trace);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_TRACE_H_

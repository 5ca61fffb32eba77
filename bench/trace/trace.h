// An allocation trace in memory. docs/trace_format.md specifies the text format that this mirrors.

#ifndef EXPANSE_BENCH_TRACE_TRACE_H_
#define EXPANSE_BENCH_TRACE_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

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
  int32_t stream = 0;   // small integers, 0 the default stream
  uint32_t block = 0;   // index of the block from 0 in order of allocation; for kMark the index into `labels`
  uint64_t value = 0;   // kAllocate: bytes asked for; kWork: microseconds
};

// A well-formed trace: every free, use and work names a live block. Readers guarantee it; Validate checks it.
struct Trace {
  std::string name;                    // the file it came from, or what generated it
  std::vector<TraceEvent> events;
  std::vector<std::string> labels;     // of marks, in order
  std::vector<uint64_t> ids;           // by block: the id that the file gave it
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
  uint64_t streams = 0;          // distinct streams of allocations
  Bytes peak_live;               // bytes asked for
  Bytes peak_allocated;          // each block rounded up to 512 bytes
  uint64_t peak_event = 0;       // 0-based among allocations and frees
  Bytes largest_block;
  uint64_t live_blocks_at_end = 0;
  Bytes live_at_end;
};

[[nodiscard]] TraceSummary Summarize(const Trace& trace);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_TRACE_H_

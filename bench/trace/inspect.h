// What a trace holds, worked out for people and for programs: `expanse inspect`.

#ifndef EXPANSE_BENCH_TRACE_INSPECT_H_
#define EXPANSE_BENCH_TRACE_INSPECT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/trace/reader.h"
#include "bench/trace/trace.h"
#include "vmm/units.h"

namespace expanse::bench {

// Blocks of (half of largest, largest] bytes; the first class holds all of at most 512.
struct SizeClassFacts {
  Bytes largest;
  uint64_t allocations = 0;
  Bytes bytes;         // of all its allocations together
  Bytes live_at_peak;  // at the moment when the most is live in the trace
};

struct StreamFacts {
  int32_t stream = 0;
  uint64_t allocations = 0;
  Bytes bytes;
  Bytes peak_live;  // of the blocks allocated on this stream
};

struct MarkFacts {
  std::string label;
  uint64_t event = 0;  // allocations and frees before it
  Bytes live;
};

// Of the blocks that the trace frees: for how many allocations and frees they lived.
struct LifetimeFacts {
  uint64_t freed = 0;
  uint64_t median = 0;
  uint64_t percentile_90 = 0;
  uint64_t longest = 0;
  uint64_t freed_on_another_stream = 0;
};

struct TraceFacts {
  TraceSummary summary;
  std::vector<SizeClassFacts> size_classes;  // ascending, from the first that occurs to the last
  std::vector<StreamFacts> streams;          // ascending
  std::vector<MarkFacts> marks;              // in order
  LifetimeFacts lifetimes;
};

// `trace` must be well-formed. O(events).
[[nodiscard]] TraceFacts Inspect(const Trace& trace);

// A few dozen lines for a terminal, ending with a line break.
[[nodiscard]] std::string InspectText(const LoadedTrace& loaded);
// One JSON object: name, format, warnings and the facts, sizes in bytes. Ends with a line break.
[[nodiscard]] std::string InspectJson(const LoadedTrace& loaded);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_INSPECT_H_

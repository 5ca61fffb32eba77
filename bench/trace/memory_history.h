// A log of what an allocator did, by address, and how it becomes a trace. Log formats are read into this first.

#ifndef EXPANSE_BENCH_TRACE_MEMORY_HISTORY_H_
#define EXPANSE_BENCH_TRACE_MEMORY_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/trace/trace.h"
#include "vmm/units.h"

namespace expanse::bench {

struct HistoryEvent {
  enum class Kind : uint8_t {
    kAllocate,
    kFreeRequested,  // the program gave the block up; a stream may still use it
    kFreeCompleted,  // the allocator took it back
    kOutOfMemory,    // a request of `size` failed; no address
  };
  Kind kind;
  DeviceAddress address;
  Bytes size;           // bytes asked for
  uint64_t stream = 0;  // as the log names it; 0 is the default stream
};

struct HistoryBlock {
  DeviceAddress address;
  Bytes size;
  uint64_t stream = 0;
};

// What one device's log holds, in its order.
struct MemoryHistory {
  std::vector<HistoryEvent> events;
  std::vector<HistoryBlock> live_at_end;  // what the log's last word on the heap says is still in use
  bool knows_live_at_end = false;         // whether it has such a word at all
};

// The mark between blocks that were live before the log begins and the log itself.
inline constexpr absl::string_view kPrologueMark = "prologue_end";

// The trace of a history. Blocks that the log frees without having allocated them, and blocks live at its end that it
// never mentions, were live before: they are allocated first, in order of address, and closed by kPrologueMark. A block
// lives until its kFreeCompleted. Streams become small integers in order of appearance, 0 staying 0. What does not fit
// together (frees lost or doubled) is mended as docs/trace_format.md says and told in `warnings`. kInvalidArgument when
// the result is not well-formed: more than kMaxLiveBytes live. O(events), and a sort of the prologue.
[[nodiscard]] absl::StatusOr<Trace> TraceFromHistory(const MemoryHistory& history, absl::string_view name,
                                                     std::vector<std::string>& warnings);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_MEMORY_HISTORY_H_

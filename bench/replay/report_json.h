// The JSON output of replay, compare and fit.

#ifndef EXPANSE_BENCH_REPLAY_REPORT_JSON_H_
#define EXPANSE_BENCH_REPLAY_REPORT_JSON_H_

#include <string>

#include "absl/types/span.h"
#include "bench/replay/replay.h"
#include "bench/trace/trace.h"

namespace expanse::bench {

// What the results were got on.
struct ReportDevice {
  bool simulated = true;
  std::string name;
  std::string costs;  // simulator: name of the cost model
};

// One object: "trace", "device" and "results", an array in the order given. Programs rely on the keys: every key of a
// result is always there, and one whose figure is absent is null. "driver_calls" has the entry points that were called,
// by the driver's names. Ends with a newline.
[[nodiscard]] std::string ReportJson(const Trace& trace, const ReportDevice& device,
                                     absl::Span<const ReplayResult> results);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_REPORT_JSON_H_

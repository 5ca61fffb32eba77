// The tables that replay, compare and fit print.

#ifndef EXPANSE_BENCH_TOOL_REPORT_TABLES_H_
#define EXPANSE_BENCH_TOOL_REPORT_TABLES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/replay/replay.h"
#include "bench/trace/trace.h"

namespace expanse::tool {

// "FILE: 133,236 events, peak live 61.82 GiB, 2 streams; DEVICE" and a line break
[[nodiscard]] std::string Headline(const bench::Trace& trace, const std::string& device);

// The trace's file without its folder.
[[nodiscard]] std::string ShortName(const bench::Trace& trace);

// Of a picture: the short name, and `what`.
[[nodiscard]] std::string Title(const bench::Trace& trace, const std::string& what);

// One line for each figure of one result, then one for each mark.
[[nodiscard]] std::string ReplayTable(const bench::ReplayResult& result);

// One row for each result. Columns that only some runs need (a request that failed, what was unused then, hazards, the
// smallest capacity) appear when one of the results has something to say there.
// `traces`, if not empty, names the trace of each result in a first column.
[[nodiscard]] std::string CompareTable(absl::Span<const bench::ReplayResult> results,
                                       absl::Span<const std::string> traces = {});

// One row for each result of Fit; one without a smallest capacity fits none.
[[nodiscard]] std::string FitTable(absl::Span<const bench::ReplayResult> results, Bytes largest_tried);

// "event 12,345 (step3)", or "no".
[[nodiscard]] std::string OutOfMemoryAt(const bench::ReplayResult& result);

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_REPORT_TABLES_H_

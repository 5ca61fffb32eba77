// The base trace format, text that docs/trace_format.md specifies: reading and writing.

#ifndef EXPANSE_BENCH_TRACE_BASE_FORMAT_H_
#define EXPANSE_BENCH_TRACE_BASE_FORMAT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/trace/trace.h"

namespace expanse::bench {

// The trace that `text` holds; its name becomes `name`. kInvalidArgument names file, line, value and what was expected:
// a missing header, an unknown operation, a field that is missing, negative, not a number, too large or not empty where
// it must be, a block that is not live, an id that is live already. O(length of text).
[[nodiscard]] absl::StatusOr<Trace> ParseBaseFormat(absl::string_view text, absl::string_view name);

// The text of a well-formed trace, which reads back as the same events, labels, ids and extra columns. kInvalidArgument
// when a label or a column cannot be written (it holds a comma, '#' or a line break) or the trace is not well-formed.
[[nodiscard]] absl::StatusOr<std::string> FormatBaseFormat(const Trace& trace);

// Whether `text` begins, after comments and blank lines, with something that means to be the header of the base format.
[[nodiscard]] bool LooksLikeBaseFormat(absl::string_view text);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_BASE_FORMAT_H_

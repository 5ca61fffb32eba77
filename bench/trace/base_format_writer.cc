// FormatBaseFormat of base_format.h.

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/trace/base_format.h"
#include "bench/trace/base_format_text.h"
#include "bench/trace/quote.h"

namespace expanse::bench {
namespace {

bool FitsColumn(absl::string_view text) {
  return !HasControlCharacter(text) && text == absl::StripAsciiWhitespace(text) &&
         text.find_first_of(",#") == absl::string_view::npos;
}

absl::Status CheckWritable(const Trace& trace) {
  const absl::Status valid = Validate(trace);
  if (!valid.ok()) return valid;
  for (const std::string& label : trace.labels) {
    if (label.empty() || !FitsColumn(label)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "label ", Quote(label), " cannot be written, expected text without comma, '#' or control characters"));
    }
  }
  for (const std::string& extra : trace.extra_columns) {
    if (extra.empty()) continue;
    if (extra[0] != ',' || absl::StrContains(extra, '#') || absl::StrContains(extra, '\n') ||
        extra != absl::StripTrailingAsciiWhitespace(extra)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "columns ", Quote(extra), " cannot be written, expected a comma first, no '#' and no line break"));
    }
  }
  for (const std::string& column : trace.extra_header) {
    if (absl::StrContains(column, ',') || absl::StrContains(column, '#') || absl::StrContains(column, '\n')) {
      return absl::InvalidArgumentError(absl::StrCat("column name ", Quote(column), " cannot be written"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> FormatBaseFormat(const Trace& trace) {
  const absl::Status status = CheckWritable(trace);
  if (!status.ok()) return status;
  std::string text(kBaseFormatHeader);
  for (const std::string& column : trace.extra_header) absl::StrAppend(&text, ",", column);
  text += '\n';
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    switch (e.op) {
      case TraceOp::kAllocate:
        absl::StrAppend(&text, "a,", trace.ids[e.block], ",", e.value, ",", e.stream);
        break;
      case TraceOp::kFree:
        absl::StrAppend(&text, "f,", trace.ids[e.block], ",,", e.stream);
        break;
      case TraceOp::kMark:
        absl::StrAppend(&text, "m,", trace.labels[e.block], ",,");
        break;
      case TraceOp::kUse:
        absl::StrAppend(&text, "u,", trace.ids[e.block], ",,", e.stream);
        break;
      case TraceOp::kWork:
        absl::StrAppend(&text, "k,", trace.ids[e.block], ",", e.value, ",", e.stream);
        break;
      case TraceOp::kWait:
        absl::StrAppend(&text, "w,,,", e.stream);
        break;
    }
    if (!trace.extra_columns.empty()) text += trace.extra_columns[i];
    text += '\n';
  }
  return text;
}

}  // namespace expanse::bench

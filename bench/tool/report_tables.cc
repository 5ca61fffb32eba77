#include "bench/tool/report_tables.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/replay/table.h"

namespace expanse::tool {
namespace {

using bench::HumanBytes;
using bench::HumanCount;
using bench::HumanMicroseconds;
using bench::HumanRatio;
using bench::kAbsent;
using bench::ReplayResult;

constexpr size_t kMaxMarksShown = 40;

uint64_t TotalCalls(const ReplayResult& result) {
  return std::accumulate(result.driver_calls.begin(), result.driver_calls.end(), uint64_t{0});
}

// Modelled time is never printed without the word.
bool IsMeasured(const ReplayResult& result) { return result.measured_driver_us.has_value(); }
std::string DriverTime(const ReplayResult& result) {
  return HumanMicroseconds(IsMeasured(result) ? result.measured_driver_us : result.modelled_driver_us);
}

std::string HostTime(const ReplayResult& result) {
  return result.host_ns_per_pair.has_value() ? absl::StrFormat("%.0f", *result.host_ns_per_pair) : kAbsent;
}

std::string SmallestOverLive(const ReplayResult& result) {
  return result.smallest_capacity.has_value() ? HumanRatio(*result.smallest_capacity, result.live_at_smallest)
                                              : kAbsent;
}

struct Column {
  std::string header;
  std::function<std::string(const ReplayResult&)> cell;
};

std::string Render(const std::vector<Column>& columns, absl::Span<const ReplayResult> results,
                   absl::Span<const std::string> traces = {}) {
  std::vector<std::string> header;
  if (!traces.empty()) header.push_back("trace");
  for (const Column& column : columns) header.push_back(column.header);
  bench::Table table(header);
  for (size_t i = 0; i < results.size(); ++i) {
    const ReplayResult& result = results[i];
    std::vector<std::string> row;
    if (!traces.empty()) row.push_back(traces[i]);
    for (const Column& column : columns) row.push_back(column.cell(result));
    table.AddRow(std::move(row));
  }
  return table.ToString();
}

}  // namespace

std::string Headline(const bench::Trace& trace, const std::string& device) {
  const bench::TraceSummary summary = bench::Summarize(trace);
  return absl::StrCat(trace.name, ": ", HumanCount(summary.events), " events, peak live ",
                      HumanBytes(summary.peak_live), ", ", summary.streams,
                      summary.streams == 1 ? " stream" : " streams", "; ", device, "\n");
}

std::string ShortName(const bench::Trace& trace) { return trace.name.substr(trace.name.rfind('/') + 1); }

std::string Title(const bench::Trace& trace, const std::string& what) {
  return absl::StrCat(ShortName(trace), ", ", what);
}

std::string OutOfMemoryAt(const ReplayResult& result) {
  if (!result.out_of_memory) return "no";
  std::string where = absl::StrCat("event ", HumanCount(result.failed_at_event));
  if (result.failed_in_mark.has_value()) absl::StrAppend(&where, " (", *result.failed_in_mark, ")");
  return where;
}

std::string ReplayTable(const ReplayResult& result) {
  bench::Table table({result.allocator, ""});
  auto row = [&table](const char* name, std::string value) { table.AddRow({name, std::move(value)}); };
  row("events", HumanCount(result.events));
  row("peak live", HumanBytes(result.peak_live));
  row("peak allocated", HumanBytes(result.peak_allocated));
  row("peak pending", HumanBytes(result.peak_pending));
  row("peak reserved", HumanBytes(result.peak_reserved));
  row("reserved / live", HumanRatio(result.peak_reserved, result.peak_live));
  row("address space", HumanBytes(result.address_space_peak));
  row("driver calls", HumanCount(TotalCalls(result)));
  row(IsMeasured(result) ? "measured driver time" : "modelled driver time", DriverTime(result));
  row(IsMeasured(result) ? "stalls" : "modelled stalls", HumanMicroseconds(result.stall_us));
  row("host ns per pair", HostTime(result));
  row("chunks created", HumanCount(result.chunks_created));
  row("chunks moved", HumanCount(result.chunks_moved));
  row("hazards", HumanCount(result.hazards));
  row("failed requests", HumanCount(result.failed_allocations));
  row("out of memory", OutOfMemoryAt(result));
  if (result.out_of_memory) {
    row("  request", HumanBytes(result.failed_request));
    row("  reserved but free then", HumanBytes(result.unused_at_failure));
  }
  std::string text = table.ToString();
  if (result.marks.empty()) return text;

  bench::Table marks({"mark", "from event", "driver calls", IsMeasured(result) ? "" : "modelled driver time"});
  const size_t shown = std::min(result.marks.size(), kMaxMarksShown);
  for (size_t i = 0; i < shown; ++i) {
    const bench::MarkFigures& mark = result.marks[i];
    marks.AddRow({mark.label, HumanCount(mark.event), HumanCount(mark.driver_calls),
                  IsMeasured(result) ? "" : HumanMicroseconds(mark.modelled_driver_us)});
  }
  absl::StrAppend(&text, "\n", marks.ToString());
  if (shown < result.marks.size()) {
    absl::StrAppend(&text, "... and ", HumanCount(result.marks.size() - shown), " more marks; --json has them all\n");
  }
  return text;
}

std::string CompareTable(absl::Span<const ReplayResult> results, absl::Span<const std::string> traces) {
  auto any = [results](auto predicate) { return std::any_of(results.begin(), results.end(), predicate); };
  std::vector<Column> columns = {
      {"allocator", [](const ReplayResult& r) { return r.allocator; }},
      {"peak\nlive", [](const ReplayResult& r) { return HumanBytes(r.peak_live); }},
      {"peak\nreserved", [](const ReplayResult& r) { return HumanBytes(r.peak_reserved); }},
      {"reserved\n/ live", [](const ReplayResult& r) { return HumanRatio(r.peak_reserved, r.peak_live); }},
      {"driver\ncalls", [](const ReplayResult& r) { return HumanCount(TotalCalls(r)); }},
      {any(IsMeasured) ? "measured\ndriver time" : "modelled\ndriver time", DriverTime},
      {"host ns\nper pair", HostTime},
      {"out of\nmemory at", OutOfMemoryAt},
      {"failed\nrequests", [](const ReplayResult& r) { return HumanCount(r.failed_allocations); }},
  };
  if (any([](const ReplayResult& r) { return r.out_of_memory; })) {
    columns.push_back(
        {"first request\nthat failed", [](const ReplayResult& r) { return HumanBytes(r.failed_request); }});
    columns.push_back(
        {"reserved but\nfree then", [](const ReplayResult& r) { return HumanBytes(r.unused_at_failure); }});
  }
  if (any([](const ReplayResult& r) { return r.hazards.value_or(0) > 0; })) {
    columns.push_back({"hazards", [](const ReplayResult& r) { return HumanCount(r.hazards); }});
  }
  if (any([](const ReplayResult& r) { return r.smallest_capacity.has_value(); })) {
    columns.push_back({"smallest\ncapacity", [](const ReplayResult& r) { return HumanBytes(r.smallest_capacity); }});
    columns.push_back({"capacity\n/ live", SmallestOverLive});
  }
  return Render(columns, results, traces);
}

std::string FitTable(absl::Span<const ReplayResult> results, Bytes largest_tried) {
  return Render(
      {
          {"allocator", [](const ReplayResult& r) { return r.allocator; }},
          {"smallest\ncapacity",
           [largest_tried](const ReplayResult& r) {
             return r.smallest_capacity.has_value() ? HumanBytes(*r.smallest_capacity)
                                                    : absl::StrCat("none up to ", HumanBytes(largest_tried));
           }},
          {"capacity\n/ live", SmallestOverLive},
          {"driver calls\nat that capacity",
           [](const ReplayResult& r) { return r.smallest_capacity.has_value() ? HumanCount(TotalCalls(r)) : kAbsent; }},
          {"modelled driver time\nat that capacity",
           [](const ReplayResult& r) { return r.smallest_capacity.has_value() ? DriverTime(r) : kAbsent; }},
      },
      results);
}

}  // namespace expanse::tool

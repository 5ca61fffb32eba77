#include "bench/trace/inspect.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace expanse::bench {
namespace {

// The number of the class that a size falls into: 0 up to 512 bytes, then one for each doubling.
size_t SizeClass(uint64_t bytes) {
  size_t size_class = 0;
  while (size_class < 63 - 9 && bytes > (uint64_t{512} << size_class)) ++size_class;
  return size_class;
}

struct BlockFacts {
  uint64_t bytes = 0;
  uint64_t born = 0;  // event, as in TraceSummary
  int32_t stream = 0;
};

LifetimeFacts Lifetimes(std::vector<uint64_t> lengths, uint64_t freed_on_another_stream) {
  LifetimeFacts facts;
  facts.freed = lengths.size();
  facts.freed_on_another_stream = freed_on_another_stream;
  if (lengths.empty()) return facts;
  std::sort(lengths.begin(), lengths.end());
  facts.median = lengths[lengths.size() / 2];
  facts.percentile_90 = lengths[lengths.size() * 9 / 10];
  facts.longest = lengths.back();
  return facts;
}

// "1.50 GiB", for columns; exact figures are in the JSON.
std::string Short(Bytes size) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(size.count());
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? absl::StrFormat("%d B", size.count()) : absl::StrFormat("%.2f %s", value, kUnits[unit]);
}

}  // namespace

TraceFacts Inspect(const Trace& trace) {
  TraceFacts facts;
  facts.summary = Summarize(trace);
  constexpr size_t kClasses = 64 - 9;
  std::vector<SizeClassFacts> classes(kClasses);
  std::vector<Bytes> live_by_class(kClasses);
  std::map<int32_t, StreamFacts> streams;
  std::map<int32_t, Bytes> live_by_stream;
  std::vector<BlockFacts> blocks(trace.ids.size());
  std::vector<uint64_t> lifetimes;
  uint64_t freed_on_another_stream = 0;
  Bytes live;
  uint64_t event = 0;
  for (const TraceEvent& e : trace.events) {
    if (e.op == TraceOp::kAllocate) {
      const Bytes size(e.value);
      const size_t size_class = SizeClass(e.value);
      blocks[e.block] = {e.value, event, e.stream};
      ++classes[size_class].allocations;
      classes[size_class].bytes += size;
      live_by_class[size_class] += size;
      live += size;
      StreamFacts& stream = streams[e.stream];
      stream.stream = e.stream;
      ++stream.allocations;
      stream.bytes += size;
      Bytes& stream_live = live_by_stream[e.stream];
      stream_live += size;
      stream.peak_live = std::max(stream.peak_live, stream_live);
      if (event == facts.summary.peak_event) {
        for (size_t i = 0; i < kClasses; ++i) classes[i].live_at_peak = live_by_class[i];
      }
      ++event;
    } else if (e.op == TraceOp::kFree) {
      const BlockFacts& block = blocks[e.block];
      live -= Bytes(block.bytes);
      live_by_class[SizeClass(block.bytes)] -= Bytes(block.bytes);
      live_by_stream[block.stream] -= Bytes(block.bytes);
      lifetimes.push_back(event - block.born);
      if (e.stream != block.stream) ++freed_on_another_stream;
      ++event;
    } else if (e.op == TraceOp::kMark) {
      facts.marks.push_back({trace.labels[e.block], event, live});
    }
  }
  size_t first = 0;
  size_t end = kClasses;
  while (end > 0 && classes[end - 1].allocations == 0) --end;
  while (first < end && classes[first].allocations == 0) ++first;
  for (size_t i = first; i < end; ++i) {
    classes[i].largest = Bytes(uint64_t{512} << i);
    facts.size_classes.push_back(classes[i]);
  }
  for (const auto& [number, stream] : streams) facts.streams.push_back(stream);
  facts.lifetimes = Lifetimes(std::move(lifetimes), freed_on_another_stream);
  return facts;
}

std::string InspectText(const LoadedTrace& loaded) {
  constexpr size_t kMostRows = 24;  // of streams and of marks
  const TraceFacts facts = Inspect(loaded.trace);
  const TraceSummary& s = facts.summary;
  std::string text = absl::StrFormat("%s\n  format            %s%s\n", loaded.trace.name, ToString(loaded.format),
                                     loaded.compressed ? ", gzip" : "");
  absl::StrAppendFormat(&text, "  events            %d: %d allocations, %d frees\n", s.events, s.allocations, s.frees);
  absl::StrAppendFormat(&text, "  other rows        %d marks, %d uses on another stream, %d work, %d waits\n", s.marks,
                        s.uses, s.work, s.waits);
  absl::StrAppendFormat(&text, "  peak live         %s, at event %d\n", ToString(s.peak_live), s.peak_event);
  absl::StrAppendFormat(&text, "  peak allocated    %s (each block rounded up to 512 bytes)\n",
                        ToString(s.peak_allocated));
  absl::StrAppendFormat(&text, "  largest block     %s\n", ToString(s.largest_block));
  absl::StrAppendFormat(&text, "  live at the end   %s in %d blocks\n", ToString(s.live_at_end), s.live_blocks_at_end);
  const LifetimeFacts& l = facts.lifetimes;
  absl::StrAppendFormat(&text,
                        "  lifetimes         of %d freed blocks, in events: median %d, 90 %% at most %d, longest %d\n",
                        l.freed, l.median, l.percentile_90, l.longest);
  absl::StrAppendFormat(&text, "  freed on a stream other than their own: %d\n", l.freed_on_another_stream);

  absl::StrAppendFormat(&text, "\n  %-14s %12s %14s %14s\n", "blocks up to", "allocations", "bytes", "live at peak");
  for (const SizeClassFacts& c : facts.size_classes) {
    absl::StrAppendFormat(&text, "  %-14s %12d %14s %14s\n", Short(c.largest), c.allocations, Short(c.bytes),
                          Short(c.live_at_peak));
  }
  absl::StrAppendFormat(&text, "\n  %-14s %12s %14s %14s\n", "stream", "allocations", "bytes", "peak live");
  for (size_t i = 0; i < std::min(facts.streams.size(), kMostRows); ++i) {
    const StreamFacts& stream = facts.streams[i];
    absl::StrAppendFormat(&text, "  %-14d %12d %14s %14s\n", stream.stream, stream.allocations, Short(stream.bytes),
                          Short(stream.peak_live));
  }
  if (facts.streams.size() > kMostRows)
    absl::StrAppendFormat(&text, "  and %d more streams\n", facts.streams.size() - kMostRows);
  if (!facts.marks.empty()) absl::StrAppendFormat(&text, "\n  %-24s %12s %14s\n", "mark", "before event", "live");
  for (size_t i = 0; i < std::min(facts.marks.size(), kMostRows); ++i) {
    absl::StrAppendFormat(&text, "  %-24s %12d %14s\n", facts.marks[i].label, facts.marks[i].event,
                          Short(facts.marks[i].live));
  }
  if (facts.marks.size() > kMostRows)
    absl::StrAppendFormat(&text, "  and %d more marks\n", facts.marks.size() - kMostRows);
  return text;
}

std::string InspectJson(const LoadedTrace& loaded) {
  using Json = nlohmann::ordered_json;
  const TraceFacts facts = Inspect(loaded.trace);
  const TraceSummary& s = facts.summary;
  Json size_classes = Json::array();
  for (const SizeClassFacts& c : facts.size_classes) {
    size_classes.push_back({{"largest_bytes", c.largest.count()},
                            {"allocations", c.allocations},
                            {"bytes", c.bytes.count()},
                            {"live_at_peak_bytes", c.live_at_peak.count()}});
  }
  Json streams = Json::array();
  for (const StreamFacts& stream : facts.streams) {
    streams.push_back({{"stream", stream.stream},
                       {"allocations", stream.allocations},
                       {"bytes", stream.bytes.count()},
                       {"peak_live_bytes", stream.peak_live.count()}});
  }
  Json marks = Json::array();
  for (const MarkFacts& mark : facts.marks) {
    marks.push_back({{"label", mark.label}, {"event", mark.event}, {"live_bytes", mark.live.count()}});
  }
  Json json;
  json["name"] = loaded.trace.name;
  json["format"] = ToString(loaded.format);
  json["compressed"] = loaded.compressed;
  json["warnings"] = loaded.warnings;
  json["events"] = s.events;
  json["allocations"] = s.allocations;
  json["frees"] = s.frees;
  json["marks"] = s.marks;
  json["uses"] = s.uses;
  json["work"] = s.work;
  json["waits"] = s.waits;
  json["peak_live_bytes"] = s.peak_live.count();
  json["peak_allocated_bytes"] = s.peak_allocated.count();
  json["peak_event"] = s.peak_event;
  json["largest_block_bytes"] = s.largest_block.count();
  json["live_blocks_at_end"] = s.live_blocks_at_end;
  json["live_bytes_at_end"] = s.live_at_end.count();
  json["lifetime_events"] = {{"freed", facts.lifetimes.freed},
                             {"median", facts.lifetimes.median},
                             {"percentile_90", facts.lifetimes.percentile_90},
                             {"longest", facts.lifetimes.longest},
                             {"freed_on_another_stream", facts.lifetimes.freed_on_another_stream}};
  json["size_classes"] = std::move(size_classes);
  json["streams"] = std::move(streams);
  json["mark_list"] = std::move(marks);
  // Names and labels may be in any encoding; what is not UTF-8 is replaced.
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace expanse::bench

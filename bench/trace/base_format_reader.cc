// ParseBaseFormat and LooksLikeBaseFormat of base_format.h.

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/trace/base_format.h"
#include "bench/trace/base_format_text.h"
#include "bench/trace/quote.h"

namespace expanse::bench {
namespace {

constexpr absl::string_view kColumns[] = {"op", "id", "bytes", "stream"};
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr size_t kShortestRow = 6;  // "w,,,0" and its line break

// What a line says: without its comment, its line break and blanks around it.
absl::string_view Meaning(absl::string_view line) { return absl::StripAsciiWhitespace(line.substr(0, line.find('#'))); }

// Cuts the next line off `text`.
absl::string_view TakeLine(absl::string_view& text) {
  const size_t end = text.find('\n');
  const absl::string_view line = text.substr(0, end);
  text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
  return line;
}

// One row, cut into its four fields and whatever follows them.
struct Row {
  absl::string_view field[4];
  int fields = 0;
  absl::string_view extra;  // begins with a comma unless empty
};

Row CutRow(absl::string_view line) {
  Row row;
  while (row.fields < 4) {
    const size_t comma = line.find(',');
    row.field[row.fields++] = absl::StripAsciiWhitespace(line.substr(0, comma));
    if (comma == absl::string_view::npos) return row;
    if (row.fields == 4) row.extra = line.substr(comma);
    line.remove_prefix(comma + 1);
  }
  return row;
}

class Parser {
 public:
  Parser(absl::string_view text, absl::string_view name) : rest_(text) {
    trace_.name = std::string(name);
    // Reserving keeps the events from being held twice while they grow; the count never exceeds what the text can hold.
    const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    trace_.events.reserve(std::min(lines, text.size() / kShortestRow + 1));
  }

  absl::StatusOr<Trace> Run() {
    absl::ConsumePrefix(&rest_, kByteOrderMark);
    absl::Status status = ReadHeader();
    while (status.ok() && !rest_.empty()) {
      const absl::string_view line = NextLine();
      if (!line.empty()) status = ReadRow(line);
    }
    if (!status.ok()) return status;
    if (!trace_.extra_columns.empty()) trace_.extra_columns.resize(trace_.events.size());
    return std::move(trace_);
  }

 private:
  absl::string_view NextLine() {
    ++line_;
    return Meaning(TakeLine(rest_));
  }

  absl::Status Error(absl::string_view problem) const {
    return absl::InvalidArgumentError(absl::StrCat(trace_.name, ":", std::max<uint64_t>(line_, 1), ": ", problem));
  }

  absl::Status ReadHeader() {
    absl::string_view line;
    while (line.empty() && !rest_.empty()) line = NextLine();
    if (line.empty()) return Error(absl::StrCat("the file holds no rows, expected the header ", kBaseFormatHeader));
    const Row row = CutRow(line);
    if (!std::equal(std::begin(kColumns), std::end(kColumns), row.field)) {
      return Error(absl::StrCat(Quote(line), ", expected the header ", kBaseFormatHeader));
    }
    if (!row.extra.empty()) trace_.extra_header = absl::StrSplit(row.extra.substr(1), ',');
    return absl::OkStatus();
  }

  absl::Status ReadRow(absl::string_view line) {
    const Row row = CutRow(line);
    if (row.field[0].size() != 1 || !absl::StrContains("afmukw", row.field[0])) {
      return Error(absl::StrCat("operation ", Quote(row.field[0]), ", expected one of a f m u k w"));
    }
    if (row.fields < 4) {
      return Error(
          absl::StrCat(row.fields, " fields in ", Quote(line), ", expected at least four: ", kBaseFormatHeader));
    }
    TraceEvent event{};
    const absl::Status status = ReadFields(row, event);
    if (!status.ok()) return status;
    trace_.events.push_back(event);
    if (!row.extra.empty()) {
      trace_.extra_columns.resize(trace_.events.size());
      trace_.extra_columns.back() = std::string(row.extra);
    }
    return absl::OkStatus();
  }

  absl::Status ReadFields(const Row& row, TraceEvent& event) {
    absl::Status status;
    uint64_t id = 0;
    switch (row.field[0][0]) {
      case 'a':
        event.op = TraceOp::kAllocate;
        status.Update(ReadNumber("id", row.field[1], 0, std::numeric_limits<uint64_t>::max(), id));
        status.Update(ReadNumber("bytes", row.field[2], 1, kMaxLiveBytes.count(), event.value));
        status.Update(ReadStream(row, event));
        if (status.ok()) status = Allocate(id, event);
        return status;
      case 'm':
        event.op = TraceOp::kMark;
        status.Update(ExpectEmpty("bytes", row.field[2]));
        status.Update(ExpectEmpty("stream", row.field[3]));
        if (status.ok()) status = Mark(row.field[1], event);
        return status;
      case 'w':
        event.op = TraceOp::kWait;
        status.Update(ExpectEmpty("id", row.field[1]));
        status.Update(ExpectEmpty("bytes", row.field[2]));
        status.Update(ReadStream(row, event));
        return status;
      case 'k':
        event.op = TraceOp::kWork;
        status.Update(ReadNumber("microseconds", row.field[2], 0, std::numeric_limits<int64_t>::max(), event.value));
        break;
      default:
        event.op = row.field[0][0] == 'f' ? TraceOp::kFree : TraceOp::kUse;
        status.Update(ExpectEmpty("bytes", row.field[2]));
        break;
    }
    status.Update(ReadNumber("id", row.field[1], 0, std::numeric_limits<uint64_t>::max(), id));
    status.Update(ReadStream(row, event));
    if (status.ok()) status = Touch(id, event);
    return status;
  }

  absl::Status Allocate(uint64_t id, TraceEvent& event) {
    const Bytes rounded = RoundUp(Bytes(event.value), kTraceRounding);
    if (rounded > kMaxLiveBytes - live_) {
      return Error(absl::StrCat("bytes '", event.value, "' with ", live_.count(), " live, expected at most ",
                                kMaxLiveBytes.count(), " in all"));
    }
    if (trace_.ids.size() == std::numeric_limits<uint32_t>::max()) return Error("more than 2^32 - 1 allocations");
    event.block = trace_.block_count();
    const auto [entry, added] = live_blocks_.try_emplace(id, LiveBlock{event.block, line_, rounded});
    if (!added) {
      return Error(
          absl::StrCat("id '", id, "' is live since line ", entry->second.line, ", expected an id that is not"));
    }
    live_ += rounded;
    trace_.ids.push_back(id);
    return absl::OkStatus();
  }

  absl::Status Touch(uint64_t id, TraceEvent& event) {
    const auto entry = live_blocks_.find(id);
    if (entry == live_blocks_.end())
      return Error(absl::StrCat("id '", id, "' is not live, expected the id of a live block"));
    event.block = entry->second.block;
    if (event.op == TraceOp::kFree) {
      live_ -= entry->second.rounded;
      live_blocks_.erase(entry);
    }
    return absl::OkStatus();
  }

  absl::Status Mark(absl::string_view label, TraceEvent& event) {
    if (label.empty() || HasControlCharacter(label)) {
      return Error(absl::StrCat("label ", Quote(label), ", expected printable text"));
    }
    event.block = static_cast<uint32_t>(trace_.labels.size());
    trace_.labels.emplace_back(label);
    return absl::OkStatus();
  }

  absl::Status ReadStream(const Row& row, TraceEvent& event) const {
    uint64_t stream = 0;
    const absl::Status status = ReadNumber("stream", row.field[3], 0, std::numeric_limits<int32_t>::max(), stream);
    event.stream = static_cast<int32_t>(stream);
    return status;
  }

  absl::Status ReadNumber(absl::string_view what, absl::string_view field, uint64_t least, uint64_t most,
                          uint64_t& value) const {
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error == std::errc() && end == field.data() + field.size() && value >= least && value <= most)
      return absl::OkStatus();
    return Error(absl::StrCat(what, " ", Quote(field), ", expected a whole number from ", least, " to ", most));
  }

  absl::Status ExpectEmpty(absl::string_view what, absl::string_view field) const {
    if (field.empty()) return absl::OkStatus();
    return Error(absl::StrCat(what, " ", Quote(field), ", expected nothing there in such a row"));
  }

  struct LiveBlock {
    uint32_t block;
    uint64_t line;
    Bytes rounded;
  };

  absl::string_view rest_;
  uint64_t line_ = 0;
  Trace trace_;
  absl::flat_hash_map<uint64_t, LiveBlock> live_blocks_;  // by id
  Bytes live_;                                            // rounded
};

}  // namespace

absl::StatusOr<Trace> ParseBaseFormat(absl::string_view text, absl::string_view name) {
  return Parser(text, name).Run();
}

bool LooksLikeBaseFormat(absl::string_view text) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  while (!text.empty()) {
    const absl::string_view line = Meaning(TakeLine(text));
    if (!line.empty()) return absl::StartsWith(line, "op,");
  }
  return false;
}

}  // namespace expanse::bench

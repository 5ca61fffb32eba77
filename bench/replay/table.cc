#include "bench/replay/table.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace expanse::bench {
namespace {

// Characters, not bytes: every byte of UTF-8 but the continuations begins one.
size_t Width(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void AppendLine(const std::vector<std::string>& cells, const std::vector<size_t>& widths, std::string* out) {
  std::string line;
  for (size_t column = 0; column < cells.size(); ++column) {
    const std::string padding(widths[column] - Width(cells[column]), ' ');
    if (column == 0) {
      absl::StrAppend(&line, cells[column], padding);
    } else {
      absl::StrAppend(&line, "  ", padding, cells[column]);
    }
  }
  line.erase(line.find_last_not_of(' ') + 1);
  absl::StrAppend(out, line, "\n");
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  assert(cells.size() == header_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::ToString() const {
  // Short headers stand at the bottom, next to the figures.
  std::vector<std::vector<std::string>> header_cells;
  size_t header_lines = 0;
  for (const std::string& cell : header_) {
    header_cells.push_back(absl::StrSplit(cell, '\n'));
    header_lines = std::max(header_lines, header_cells.back().size());
  }
  std::vector<std::vector<std::string>> lines(header_lines, std::vector<std::string>(header_.size()));
  for (size_t column = 0; column < header_.size(); ++column) {
    const size_t skip = header_lines - header_cells[column].size();
    for (size_t i = 0; i < header_cells[column].size(); ++i) lines[skip + i][column] = header_cells[column][i];
  }
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<size_t> widths(header_.size(), 0);
  for (const auto& line : lines) {
    for (size_t column = 0; column < line.size(); ++column) {
      widths[column] = std::max(widths[column], Width(line[column]));
    }
  }
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == header_lines) {
      std::vector<std::string> rule;
      rule.reserve(widths.size());
      for (const size_t width : widths) rule.emplace_back(width, '-');
      AppendLine(rule, widths, &out);
    }
    AppendLine(lines[i], widths, &out);
  }
  return out;
}

std::string HumanBytes(Bytes size) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (size < KiB(1)) return absl::StrCat(size.count(), " B");
  double scaled = static_cast<double>(size.count()) / 1024;
  int unit = 0;
  while (scaled >= 1024 && unit < 5) {
    scaled /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.2f %s", scaled, kUnits[unit]);
}

std::string HumanCount(uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (size_t from_end = 3; from_end < digits.size(); from_end += 4) digits.insert(digits.size() - from_end, ",");
  return digits;
}

std::string HumanMicroseconds(double us) {
  if (us >= 100e3) return absl::StrFormat("%.2f s", us / 1e6);
  if (us >= 1e3) return absl::StrFormat("%.1f ms", us / 1e3);
  return absl::StrFormat("%.1f us", us);
}

std::string HumanRatio(Bytes part, Bytes whole) {
  if (whole.is_zero()) return kAbsent;
  return absl::StrFormat("%.4f", static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

std::string HumanBytes(std::optional<Bytes> size) { return size.has_value() ? HumanBytes(*size) : kAbsent; }
std::string HumanCount(std::optional<uint64_t> count) { return count.has_value() ? HumanCount(*count) : kAbsent; }
std::string HumanMicroseconds(std::optional<double> us) { return us.has_value() ? HumanMicroseconds(*us) : kAbsent; }

}  // namespace expanse::bench

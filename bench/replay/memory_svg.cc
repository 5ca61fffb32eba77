#include "bench/replay/memory_svg.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "bench/replay/table.h"

namespace expanse::bench {
namespace {

constexpr int kWidth = 960, kPlotHeight = 360;
constexpr int kLeft = 72, kRight = 24, kTitleHeight = 34, kLegendRow = 18, kMarkRow = 18, kBottom = 48;
constexpr int kLegendColumns = 3;
constexpr size_t kMaxMarks = 60;
constexpr size_t kStyles = 6;

// The colours of lines by theme, in the order of results; the dashes repeat the distinction.
constexpr const char* kStyle = R"(<style>
.em-back{fill:#ffffff}.em-ink{fill:#1f2328}.em-faint{fill:#59636e}.em-grid{stroke:#d1d9e0}.em-mark{stroke:#b6bfc8}
.em-live{fill:#8c959f;fill-opacity:.35}.em-cap{stroke:#1f2328}.em-halo{stroke:#ffffff}
.em-0{stroke:#0072b2}.em-1{stroke:#d55e00}.em-2{stroke:#009e73}.em-3{stroke:#b0508a}.em-4{stroke:#b07c00}.em-5{stroke:#1f2328}
@media (prefers-color-scheme:dark){
.em-back{fill:#0d1117}.em-ink{fill:#f0f6fc}.em-faint{fill:#9198a1}.em-grid{stroke:#2b323b}.em-mark{stroke:#4a535e}
.em-cap{stroke:#f0f6fc}.em-halo{stroke:#0d1117}
.em-0{stroke:#56b4e9}.em-1{stroke:#ff8c42}.em-2{stroke:#2fd3a0}.em-3{stroke:#e59ac6}.em-4{stroke:#e6b422}.em-5{stroke:#f0f6fc}}
</style>
)";
constexpr const char* kDashes[kStyles] = {"", "7 3", "2 2", "9 3 2 3", "1 3", "4 4"};

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Text(double x, double y, const char* css, const char* anchor, int size, const std::string& text) {
  return absl::StrFormat("<text x=\"%.0f\" y=\"%.0f\" class=\"%s\" text-anchor=\"%s\" font-size=\"%d\">%s</text>\n", x,
                         y, css, anchor, size, Escape(text));
}

// The smallest of 1, 2, 5, 10, 20, ... that cuts `range` into at most `pieces`.
uint64_t NiceStep(uint64_t range, uint64_t pieces) {
  uint64_t power = 1;
  while (true) {
    for (const uint64_t digit : {1, 2, 5}) {
      if (range / (digit * power) <= pieces) return digit * power;
    }
    power *= 10;
  }
}

// Where events and bytes are on the picture.
struct Scale {
  uint64_t events = 1;
  Bytes top;
  int plot_top = 0;

  [[nodiscard]] int X(uint64_t event) const {
    const double part = static_cast<double>(std::min(event, events)) / static_cast<double>(events);
    return kLeft + static_cast<int>(std::lround(part * (kWidth - kLeft - kRight)));
  }
  [[nodiscard]] double Y(Bytes size) const {
    const double part = static_cast<double>(size.count()) / static_cast<double>(top.count());
    return plot_top + kPlotHeight * (1 - part);
  }
};

// A staircase through the points: right, then up or down. Whole pixels in x and tenths in y keep it small; what does
// not change the picture is left out.
template <typename Figure>
std::string Staircase(const std::vector<TimelinePoint>& timeline, const Scale& scale, Figure figure) {
  std::string path;
  std::string last_y;
  int last_x = -1;
  for (const TimelinePoint& point : timeline) {
    const int x = scale.X(point.event);
    std::string y = absl::StrFormat("%.1f", scale.Y(figure(point)));
    if (path.empty()) {
      path = absl::StrCat("M", x, " ", y);
      last_x = x;
    } else if (y != last_y) {
      if (x != last_x) absl::StrAppend(&path, "H", x);
      absl::StrAppend(&path, "V", y);
      last_x = x;
    }
    last_y = std::move(y);
  }
  if (!timeline.empty()) absl::StrAppend(&path, "H", scale.X(timeline.back().event));
  return path;
}

class Picture {
 public:
  Picture(std::string title, absl::Span<const ReplayResult> results) : title_(std::move(title)) {
    Bytes highest(1);
    for (const ReplayResult& result : results) {
      if (result.timeline.empty()) continue;
      if (fullest_ == nullptr || result.timeline.back().event > fullest_->timeline.back().event) fullest_ = &result;
      shown_.push_back(&result);
      scale_.events = std::max(scale_.events, result.events);
      highest = std::max({highest, result.peak_live, result.peak_reserved});
    }
    if (!shown_.empty()) {
      const Bytes capacity = shown_.front()->capacity;
      const bool same = std::all_of(shown_.begin(), shown_.end(),
                                    [capacity](const ReplayResult* result) { return result->capacity == capacity; });
      // A capacity far above everything would squeeze the picture.
      draws_capacity_ = same && capacity <= highest * 3 / 2;
      if (draws_capacity_) highest = std::max(highest, capacity);
    }
    scale_.top = Bytes(highest.count() + highest.count() / 20 + 1);
    const int legend_rows = static_cast<int>(shown_.size() + 1 + kLegendColumns) / kLegendColumns;
    scale_.plot_top = kTitleHeight + legend_rows * kLegendRow + kMarkRow;
  }

  std::string Draw() {
    const int height = scale_.plot_top + kPlotHeight + kBottom;
    out_ = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
        "font-family=\"system-ui,sans-serif\">\n<title>%s</title>\n",
        kWidth, height, kWidth, height, Escape(title_));
    absl::StrAppend(&out_, kStyle, "<rect class=\"em-back\" width=\"100%\" height=\"100%\"/>\n",
                    Text(kLeft, 22, "em-ink", "start", 15, title_));
    Axes();
    Marks();
    if (fullest_ != nullptr) Live();
    // The first result is drawn last, on top.
    for (size_t i = shown_.size(); i-- > 0;) Reserved(*shown_[i], i % kStyles);
    if (draws_capacity_) Capacity();
    Legend();
    absl::StrAppend(&out_, "</svg>\n");
    return std::move(out_);
  }

 private:
  [[nodiscard]] int Bottom() const { return scale_.plot_top + kPlotHeight; }

  void Line(int x1, double y1, int x2, double y2, const std::string& attributes) {
    absl::StrAppendFormat(&out_, "<path d=\"M%d %.1fL%d %.1f\" %s/>\n", x1, y1, x2, y2, attributes);
  }

  void Axes() {
    const uint64_t unit = scale_.top >= GiB(2)   ? GiB(1).count()
                          : scale_.top >= MiB(2) ? MiB(1).count()
                                                 : KiB(1).count();
    const char* name = unit == GiB(1).count() ? "GiB" : unit == MiB(1).count() ? "MiB" : "KiB";
    const uint64_t step = NiceStep(scale_.top.count() / unit, 8);
    for (uint64_t value = 0; value * unit <= scale_.top.count(); value += step) {
      const double y = scale_.Y(Bytes(value * unit));
      Line(kLeft, y, kWidth - kRight, y, "class=\"em-grid\"");
      absl::StrAppend(&out_, Text(kLeft - 8, y + 4, "em-faint", "end", 11, absl::StrCat(value, " ", name)));
    }
    const uint64_t x_step = NiceStep(scale_.events, 8);
    for (uint64_t event = 0; event <= scale_.events; event += x_step) {
      absl::StrAppend(&out_, Text(scale_.X(event), Bottom() + 16, "em-faint", "middle", 11, HumanCount(event)));
    }
    absl::StrAppend(
        &out_, Text((kLeft + kWidth - kRight) / 2.0, Bottom() + 36, "em-faint", "middle", 12, "allocations and frees"));
  }

  void Marks() {
    if (fullest_ == nullptr || fullest_->marks.empty()) return;
    const std::vector<MarkFigures>& marks = fullest_->marks;
    const size_t every = (marks.size() + kMaxMarks - 1) / kMaxMarks;
    // Where steps are marked, their names get the room.
    const bool steps = std::any_of(marks.begin(), marks.end(), IsStep);
    int free_from = 0;  // where the next label has room
    for (size_t i = 0; i < marks.size(); i += every) {
      const int x = scale_.X(marks[i].event);
      Line(x, scale_.plot_top, x, Bottom(), "class=\"em-mark\" stroke-dasharray=\"1 2\"");
      const std::string label = marks[i].label.size() <= 16 ? marks[i].label : marks[i].label.substr(0, 13) + "...";
      const int width = 6 * static_cast<int>(label.size());
      if ((steps && !IsStep(marks[i])) || x < free_from || x + width > kWidth) continue;
      absl::StrAppend(&out_, Text(x, scale_.plot_top - 5, "em-faint", "start", 10, label));
      free_from = x + width + 6;
    }
  }

  static bool IsStep(const MarkFigures& mark) { return mark.label.rfind("step", 0) == 0; }

  void Live() {
    const std::string path =
        Staircase(fullest_->timeline, scale_, [](const TimelinePoint& point) { return point.live; });
    absl::StrAppend(&out_, "<path class=\"em-live\" d=\"", path, "V", Bottom(), "H",
                    scale_.X(fullest_->timeline.front().event), "Z\"/>\n");
  }

  static std::string Stroke(size_t style) {
    return absl::StrFormat("class=\"em-%d\" fill=\"none\" stroke-width=\"%s\"%s", style, style == 0 ? "2.5" : "1.7",
                           *kDashes[style] == 0 ? "" : absl::StrCat(" stroke-dasharray=\"", kDashes[style], "\""));
  }

  void Reserved(const ReplayResult& result, size_t style) {
    absl::StrAppend(&out_, "<path ", Stroke(style), " d=\"",
                    Staircase(result.timeline, scale_, [](const TimelinePoint& point) { return point.reserved; }),
                    "\"/>\n");
    if (!result.out_of_memory || !result.failed_at_event.has_value()) return;
    const auto after =
        std::find_if(result.timeline.begin(), result.timeline.end(),
                     [&result](const TimelinePoint& point) { return point.event >= *result.failed_at_event; });
    const TimelinePoint& point = after == result.timeline.end() ? result.timeline.back() : *after;
    const int x = scale_.X(*result.failed_at_event);
    const double y = scale_.Y(point.reserved);
    for (const std::string& stroke : {std::string("class=\"em-halo\" stroke-width=\"6\""),
                                      absl::StrCat("class=\"em-", style, "\" stroke-width=\"3\"")}) {
      Line(x - 6, y - 6, x + 6, y + 6, stroke);
      Line(x - 6, y + 6, x + 6, y - 6, stroke);
    }
  }

  void Capacity() {
    const Bytes capacity = shown_.front()->capacity;
    const double y = scale_.Y(capacity);
    Line(kLeft, y, kWidth - kRight, y, "class=\"em-cap\" stroke-dasharray=\"12 4\"");
    absl::StrAppend(&out_,
                    Text(kWidth - kRight, y - 4, "em-ink", "end", 11, absl::StrCat("capacity ", HumanBytes(capacity))));
  }

  void Legend() {
    int entry = 0;
    auto next = [&entry] {
      const int column = entry % kLegendColumns, row = entry / kLegendColumns;
      ++entry;
      return std::make_pair(kLeft + column * (kWidth - kLeft - kRight) / kLegendColumns,
                            kTitleHeight + row * kLegendRow);
    };
    if (fullest_ != nullptr) {
      const auto [x, y] = next();
      absl::StrAppendFormat(&out_, "<rect class=\"em-live\" x=\"%d\" y=\"%d\" width=\"26\" height=\"10\"/>\n", x, y);
      absl::StrAppend(&out_, Text(x + 32, y + 10, "em-ink", "start", 12,
                                  absl::StrCat("live, peak ", HumanBytes(fullest_->peak_live))));
    }
    for (size_t i = 0; i < shown_.size(); ++i) {
      const auto [x, y] = next();
      Line(x, y + 5, x + 26, y + 5, Stroke(i % kStyles));
      std::string text = absl::StrCat(shown_[i]->allocator, ", ");
      if (shown_[i]->out_of_memory) {
        absl::StrAppend(&text, "out of memory (\xC3\x97)");
      } else {
        absl::StrAppend(&text, "reserved peak ", HumanBytes(shown_[i]->peak_reserved));
      }
      absl::StrAppend(&out_, Text(x + 32, y + 10, "em-ink", "start", 12, text));
    }
  }

  const std::string title_;
  std::vector<const ReplayResult*> shown_;
  const ReplayResult* fullest_ = nullptr;  // whose replay got furthest: its live bytes and marks are drawn
  bool draws_capacity_ = false;
  Scale scale_;
  std::string out_;
};

}  // namespace

std::string DrawMemorySvg(const std::string& title, absl::Span<const ReplayResult> results) {
  return Picture(title, results).Draw();
}

}  // namespace expanse::bench

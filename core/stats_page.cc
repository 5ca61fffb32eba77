#include "core/stats_page.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace expanse {
namespace {

class Page {
 public:
  void Title(std::string_view title) { absl::StrAppend(&text_, "---- ", View(title), "\n"); }
  void Line(std::string_view name, std::string_view value) {
    constexpr size_t kColumn = 24;
    absl::StrAppend(&text_, View(name), std::string(kColumn - std::min(kColumn - 1, name.size()), ' '), View(value),
                    "\n");
  }
  void Line(std::string_view name, uint64_t value) { Line(name, absl::StrCat(value)); }
  void Line(std::string_view name, const Figure& figure) {
    Line(name, absl::StrCat(ToString(figure.current), ", peak ", ToString(figure.peak)));
  }
  void Line(std::string_view name, std::chrono::nanoseconds time) {
    Line(name, absl::StrCat(time.count() / 1000, " us"));
  }
  // With its part of the whole, in per cent.
  void Part(std::string_view name, Bytes part, Bytes whole) {
    const double percent =
        whole.is_zero() ? 0 : 100.0 * static_cast<double>(part.count()) / static_cast<double>(whole.count());
    Line(name, absl::StrCat(ToString(part), ", ", std::lround(percent), " %"));
  }
  std::string Take() && { return std::move(text_); }

 private:
  static absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

  std::string text_;
};

}  // namespace

std::string StatsPage(const Stats& stats) {
  Page page;
  page.Title("Where reserved memory is");
  const Bytes reserved = stats.reserved.current;
  const Bytes accounted = stats.allocated.current + stats.pending.current + stats.idle.current;
  page.Line("reserved", stats.reserved);
  page.Part("allocated", stats.allocated.current, reserved);
  page.Part("pending", stats.pending.current, reserved);
  page.Part("idle", stats.idle.current, reserved);
  page.Part("partly used, lost", reserved - std::min(accounted, reserved), reserved);

  page.Title("Quantities");
  page.Line("live", stats.live);
  page.Line("allocated", stats.allocated);
  page.Line("pending", stats.pending);
  page.Line("idle", stats.idle);
  page.Line("pinned", stats.pinned);
  page.Line("prewarmed", stats.prewarmed);
  page.Line("address_space", stats.address_space);

  page.Title("Counts");
  page.Line("allocations", stats.allocations);
  page.Line("frees", stats.frees);
  page.Line("failed_allocations", stats.failed_allocations);
  page.Line("live_blocks", stats.live_blocks);
  page.Line("growths", stats.growths);
  page.Line("chunks_created", stats.chunks_created);
  page.Line("chunks_prewarmed", stats.chunks_prewarmed);
  page.Line("chunks_released", stats.chunks_released);
  page.Line("chunks_moved", stats.chunks_moved);
  page.Line("chunks_refilled", stats.chunks_refilled);
  page.Line("chunks_quarantined", stats.chunks_quarantined);

  page.Title("Moves that nothing forced, modelled");
  page.Line("unforced_moves.spent", stats.unforced_moves.spent);
  page.Line("unforced_moves.allowed", stats.unforced_moves.allowed);

  page.Title("Rungs of the out-of-memory ladder");
  page.Line("rungs.collected", stats.rungs.collected);
  page.Line("rungs.moved", stats.rungs.moved);
  page.Line("rungs.created", stats.rungs.created);
  page.Line("rungs.other_class", stats.rungs.other_class);
  page.Line("rungs.others_asked", stats.rungs.others_asked);
  page.Line("rungs.callbacks_asked", stats.rungs.callbacks_asked);
  page.Line("rungs.waited", stats.rungs.waited);
  page.Line("rungs.synchronized", stats.rungs.synchronized);
  page.Line("rungs.failed", stats.rungs.failed);

  page.Title("Stalls and the driver");
  page.Line("gpu_stalls.count", stats.gpu_stalls.count);
  page.Line("gpu_stalls.time", stats.gpu_stalls.time);
  page.Line("lock_stalls.count", stats.lock_stalls.count);
  page.Line("lock_stalls.time", stats.lock_stalls.time);
  page.Line("prewarm_stalls.count", stats.prewarm_stalls.count);
  page.Line("prewarm_stalls.time", stats.prewarm_stalls.time);
  page.Line("waits", stats.waits);
  page.Line("driver_calls", stats.driver_calls);
  page.Line("driver_time", stats.driver_time);

  page.Title("Budgets of the process");
  page.Line("process.handles_taken", stats.process.handles_taken);
  page.Line("process.handles_limit", stats.process.handles_limit);
  page.Line("process.addresses_taken", ToString(stats.process.addresses_taken));
  page.Line("process.addresses_limit", ToString(stats.process.addresses_limit));
  return std::move(page).Take();
}

}  // namespace expanse

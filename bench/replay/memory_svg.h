// A picture of memory over time.

#ifndef EXPANSE_BENCH_REPLAY_MEMORY_SVG_H_
#define EXPANSE_BENCH_REPLAY_MEMORY_SVG_H_

#include <string>

#include "absl/types/span.h"
#include "bench/replay/replay.h"

namespace expanse::bench {

// An SVG document of its own, below 200 KB for up to eight results: live bytes as an area, reserved bytes as a line for
// each allocator, the capacity where it is on the scale, a cross where an allocator ran out of memory, a thin line at
// each mark. It follows the viewer's light or dark theme; colours can be told apart by colour-blind readers (Okabe and
// Ito's palette, 2008) and lines also by their dashes. Results need timelines (ReplayOptions::record_timeline); those
// without are left out. The same results give the same bytes.
[[nodiscard]] std::string DrawMemorySvg(const std::string& title, absl::Span<const ReplayResult> results);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_MEMORY_SVG_H_

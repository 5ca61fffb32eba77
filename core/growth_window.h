// Where a segment set should grow.

#ifndef EXPANSE_CORE_GROWTH_WINDOW_H_
#define EXPANSE_CORE_GROWTH_WINDOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/idle_queue.h"
#include "core/segment.h"
#include "vmm/units.h"

namespace expanse {

// A range without a used byte, some of whose slots have no chunk.
struct GrowthWindow {
  Segment* segment = nullptr;
  AddressRange range;
  uint64_t missing = 0;  // slots that need a chunk
  uint64_t idle = 0;     // idle slots that would be put to use
};

enum class WindowChoice {
  kFewestMissing,   // the one that costs the fewest chunks
  kFewestOccupied,  // the one that takes the fewest chunks away from others, missing and idle together: what can still
                    // be had when memory is nearly full
};

// A gap is a maximal run of free blocks and holes. In each gap that has a hole and room for `size` bytes, the windows
// that begin where a block begins or end where one ends are compared, and the best of all is returned, of equals the
// one in the earliest segment, there at the lowest address, so that the untouched end of a segment is used last. None
// if no gap is large enough.
// O(n log n) in the blocks of such gaps; blocks outside them are not looked at.
[[nodiscard]] std::optional<GrowthWindow> FindGrowthWindow(absl::Span<Segment* const> segments, Bytes size,
                                                           WindowChoice choice);

// The slots of the window without a chunk, as runs of neighbours, from the lowest.
[[nodiscard]] std::vector<SlotRun> MissingSlots(const GrowthWindow& window);

}  // namespace expanse

#endif  // EXPANSE_CORE_GROWTH_WINDOW_H_

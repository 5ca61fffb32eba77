// The figures of one pool.

#ifndef EXPANSE_CORE_POOL_FIGURES_H_
#define EXPANSE_CORE_POOL_FIGURES_H_

#include "core/figure_counter.h"
#include "core/pool.h"

namespace expanse {

// The allocator counts blocks, segments count chunks. Guarded by the allocator's lock. O(1).
struct PoolFigures {
  FigureCounter live;
  FigureCounter allocated;
  FigureCounter pending;
  FigureCounter reserved;
  FigureCounter idle;
  FigureCounter pinned;

  [[nodiscard]] PoolStats stats() const {
    PoolStats stats;
    stats.live = live.figure();
    stats.allocated = allocated.figure();
    stats.pending = pending.figure();
    stats.reserved = reserved.figure();
    stats.idle = idle.figure();
    stats.pinned = pinned.figure();
    return stats;
  }
  void ResetPeaks() {
    for (FigureCounter* figure : {&live, &allocated, &pending, &reserved, &idle, &pinned}) figure->ResetPeak();
  }
};

}  // namespace expanse

#endif  // EXPANSE_CORE_POOL_FIGURES_H_

// The running figures of a rival allocator and their peaks.

#ifndef EXPANSE_BENCH_ALLOCATORS_FIGURE_BOOK_H_
#define EXPANSE_BENCH_ALLOCATORS_FIGURE_BOOK_H_

#include <algorithm>

#include "bench/allocators/bench_allocator.h"
#include "vmm/units.h"

namespace expanse::bench {

// A quantity and the highest value it ever had.
class PeakCounter {
 public:
  void Add(Bytes bytes) {
    current_ += bytes;
    peak_ = std::max(peak_, current_);
  }
  void Subtract(Bytes bytes) { current_ -= bytes; }
  [[nodiscard]] Bytes current() const { return current_; }
  [[nodiscard]] Bytes peak() const { return peak_; }

 private:
  Bytes current_;
  Bytes peak_;
};

// Not thread-safe: the allocator's lock guards it.
struct FigureBook {
  PeakCounter live, allocated, pending, reserved;

  // The figures as the interface reports them, without those that only allocators with chunks have.
  [[nodiscard]] AllocatorFigures Report() const {
    AllocatorFigures figures;
    figures.live = live.current();
    figures.allocated = allocated.current();
    figures.pending = pending.current();
    figures.reserved = reserved.current();
    figures.peak_live = live.peak();
    figures.peak_allocated = allocated.peak();
    figures.peak_pending = pending.peak();
    figures.peak_reserved = reserved.peak();
    return figures;
  }
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_FIGURE_BOOK_H_

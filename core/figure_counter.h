// Keeps one Figure of the statistics up to date.

#ifndef EXPANSE_CORE_FIGURE_COUNTER_H_
#define EXPANSE_CORE_FIGURE_COUNTER_H_

#include "core/stats.h"
#include "vmm/units.h"

namespace expanse {

// Guarded by whoever owns it. O(1).
class FigureCounter {
 public:
  void Add(Bytes size) {
    figure_.current += size;
    figure_.total += size;
    if (figure_.peak < figure_.current) figure_.peak = figure_.current;
  }
  void Subtract(Bytes size) { figure_.current -= size; }
  void Set(Bytes size) {
    if (size > figure_.current) {
      Add(size - figure_.current);
    } else {
      figure_.current = size;
    }
  }
  void ResetPeak() { figure_.peak = figure_.current; }

  [[nodiscard]] Bytes current() const { return figure_.current; }
  [[nodiscard]] const Figure& figure() const { return figure_; }

 private:
  Figure figure_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_FIGURE_COUNTER_H_

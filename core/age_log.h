// How long memory has been idle, coarsely.

#ifndef EXPANSE_CORE_AGE_LOG_H_
#define EXPANSE_CORE_AGE_LOG_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse {

// Remembers, for spans of an eighth of `age`, how many frees there had been at the end of each, and how little memory
// was spare during it. So chunks need no time of their own: those that fell idle in a free before the end of a span
// have been idle at least since then.
//
// Invariant: spans are in the order of time and do not overlap, and at most the first ended `age` ago. Guarded by the
// allocator's lock.
class AgeLog {
 public:
  using Time = std::chrono::nanoseconds;

  // What nothing has needed for `age` at least.
  struct Old {
    uint64_t frees = 0;  // chunks that fell idle in a free of this number or a lower one, and are idle still
    Bytes spare;         // so much of the spare memory
  };

  // `age` is positive.
  explicit AgeLog(Time age) : age_(age) {}

  // Takes note that it is `now`, on a clock that does not go back, and that there were so many frees and is so much
  // spare memory by now. Whether that begins a new span: only then can there be more that is old than before, or once
  // in a while. O(1), amortised.
  bool Note(Time now, uint64_t frees, Bytes spare);
  // So much memory is spare now, less than before perhaps. O(1).
  void NoteSpare(Bytes spare) {
    if (!spans_.empty()) spans_.back().least_spare = std::min(spans_.back().least_spare, spare);
  }
  // What was old when Note was called last. What was freed nine eighths of `age` before that, or earlier, is part of
  // it. O(1): there are no more than ten spans.
  [[nodiscard]] Old Find() const;

  // OK, or INTERNAL naming the inconsistency.
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Span {
    Time begin;
    Time end;        // when Note was called last in it
    uint64_t frees;  // at the end
    Bytes least_spare;
  };

  [[nodiscard]] bool IsOld(const Span& span) const { return spans_.back().end - span.end >= age_; }

  const Time age_;
  std::deque<Span> spans_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_AGE_LOG_H_

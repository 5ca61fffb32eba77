// A map from byte intervals to values, in which an update of any interval splits what it overlaps.

#ifndef EXPANSE_VMM_SIM_INTERVAL_MAP_H_
#define EXPANSE_VMM_SIM_INTERVAL_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace expanse::sim {

// Disjoint, non-empty intervals [begin, end), each with a value. Value needs operator== and copying. Bytes in no
// interval have no value.
//
// Invariant: intervals are disjoint and not empty. Two that touch may hold equal values only if Update() was not the
// last to change either. Not thread-safe.
template <typename Value>
class IntervalMap {
 public:
  // Applies change(begin, end, value&) to every maximal piece of [begin, end) that holds one value; bytes that had none
  // get a Value{} first. Neighbours that become equal are joined. O((log n + pieces) * cost of change).
  template <typename Change>
  void Update(uint64_t begin, uint64_t end, Change&& change) {
    if (begin >= end) return;
    Split(begin);
    Split(end);
    uint64_t at = begin;
    auto it = pieces_.lower_bound(begin);
    while (at < end) {
      if (it == pieces_.end() || it->first > at) {  // A gap: fill it up to the next piece.
        const uint64_t gap_end = it == pieces_.end() ? end : std::min(end, it->first);
        it = pieces_.emplace_hint(it, at, Piece{gap_end, Value{}});
      }
      change(it->first, it->second.end, it->second.value);
      at = it->second.end;
      it = std::next(JoinWithPrevious(it));
    }
    if (it != pieces_.end()) JoinWithPrevious(it);
  }

  // Calls visit(begin, end, value) for what holds a value in [begin, end), clipped to it, in order, until it returns
  // false.
  template <typename Visit>
  void ForEach(uint64_t begin, uint64_t end, Visit&& visit) const {
    auto it = pieces_.upper_bound(begin);
    if (it != pieces_.begin() && std::prev(it)->second.end > begin) --it;
    for (; it != pieces_.end() && it->first < end; ++it) {
      if (!visit(std::max(it->first, begin), std::min(it->second.end, end), it->second.value)) return;
    }
  }

  // Takes the values of [begin, end) away.
  void Erase(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    Split(begin);
    Split(end);
    pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
  }

  // Takes away every interval whose value satisfies dead(value). O(n).
  template <typename Dead>
  void EraseIf(Dead&& dead) {
    for (auto it = pieces_.begin(); it != pieces_.end();)
      it = dead(it->second.value) ? pieces_.erase(it) : std::next(it);
  }

  [[nodiscard]] size_t size() const { return pieces_.size(); }
  [[nodiscard]] bool empty() const { return pieces_.empty(); }

  // OK, or which interval overlaps the one before it or is empty. O(n).
  [[nodiscard]] absl::Status CheckInvariants() const {
    uint64_t last_end = 0;
    for (const auto& [begin, piece] : pieces_) {
      if (begin < last_end || piece.end <= begin) {
        return absl::InternalError(
            absl::StrCat("interval [", begin, ", ", piece.end, ") follows one that ends at ", last_end));
      }
      last_end = piece.end;
    }
    return absl::OkStatus();
  }

 private:
  struct Piece {
    uint64_t end;
    Value value;
  };
  using Iterator = typename std::map<uint64_t, Piece>::iterator;

  // Makes `at` a boundary of whatever interval holds it.
  void Split(uint64_t at) {
    auto it = pieces_.upper_bound(at);
    if (it == pieces_.begin()) return;
    Piece& piece = std::prev(it)->second;
    if (std::prev(it)->first == at || piece.end <= at) return;
    pieces_.emplace_hint(it, at, piece);
    piece.end = at;
  }

  // Joins `it` to the interval before it if they touch and are equal; returns the iterator to what holds it now.
  Iterator JoinWithPrevious(Iterator it) {
    if (it == pieces_.begin()) return it;
    auto previous = std::prev(it);
    if (previous->second.end != it->first || !(previous->second.value == it->second.value)) return it;
    previous->second.end = it->second.end;
    pieces_.erase(it);
    return previous;
  }

  std::map<uint64_t, Piece> pieces_;  // By begin.
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_INTERVAL_MAP_H_

// Statistics as text for people.

#ifndef EXPANSE_CORE_STATS_PAGE_H_
#define EXPANSE_CORE_STATS_PAGE_H_

#include <string>

#include "core/stats.h"

namespace expanse {

// A page of one figure a line, with where the reserved bytes are at its head. docs/statistics.md explains each line by
// the name that stands there. For people: its form may change. O(1).
[[nodiscard]] std::string StatsPage(const Stats& stats);

}  // namespace expanse

#endif  // EXPANSE_CORE_STATS_PAGE_H_

#include "vmm/counting_driver.h"

#include <numeric>

namespace expanse {

uint64_t DriverCallCounts::TotalCalls() const { return std::accumulate(calls.begin(), calls.end(), uint64_t{0}); }

std::chrono::nanoseconds DriverCallCounts::TotalMeasured() const {
  return std::accumulate(measured.begin(), measured.end(), std::chrono::nanoseconds(0));
}

CountingDriver::CountingDriver(const Driver& inner) : table_(inner) {
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) \
  table_.member.CountIn(counters_[static_cast<int>(EntryPoint::member)]);
#include "vmm/driver_entry_points.inc"
}

DriverCallCounts CountingDriver::counts() const {
  DriverCallCounts counts;
  for (int i = 0; i < kEntryPointCount; ++i) {
    counts.calls[i] = counters_[i].calls();
    counts.measured[i] = counters_[i].time();
  }
  return counts;
}

void CountingDriver::Reset() {
  for (CallCounter& counter : counters_) counter.Reset();
}

}  // namespace expanse

// A driver table that counts the calls made through it and sums the time they took.

#ifndef EXPANSE_VMM_COUNTING_DRIVER_H_
#define EXPANSE_VMM_COUNTING_DRIVER_H_

#include <array>
#include <chrono>
#include <cstdint>

#include "vmm/driver.h"
#include "vmm/driver_function.h"

namespace expanse {

// Sums since the counting driver was made or reset, by EntryPoint.
struct DriverCallCounts {
  std::array<uint64_t, kEntryPointCount> calls{};
  std::array<std::chrono::nanoseconds, kEntryPointCount> measured{};  // wall time inside the driver, all threads

  [[nodiscard]] uint64_t TotalCalls() const;
  [[nodiscard]] std::chrono::nanoseconds TotalMeasured() const;
};

// Wraps a driver; any number of them may be alive, and may wrap one another. It must outlive all users of its table,
// and be outlived by the counting driver whose table it wraps, if it is one's.
//
// Thread-safe. A call through the table costs two clock readings and two atomic additions more than a direct one.
class CountingDriver {
 public:
  explicit CountingDriver(const Driver& inner);
  CountingDriver(const CountingDriver&) = delete;
  CountingDriver& operator=(const CountingDriver&) = delete;

  // Null members are those that are null in the driver that is wrapped.
  [[nodiscard]] const Driver& driver() const { return table_; }

  // Each figure is exact; figures of different entry points may be read a call apart while other threads call.
  [[nodiscard]] DriverCallCounts counts() const;
  void Reset();

 private:
  Driver table_;
  std::array<CallCounter, kEntryPointCount> counters_;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_COUNTING_DRIVER_H_

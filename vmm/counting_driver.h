// A driver table that counts the calls made through it and sums the time they took.

#ifndef EXPANSE_VMM_COUNTING_DRIVER_H_
#define EXPANSE_VMM_COUNTING_DRIVER_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "vmm/driver.h"

namespace expanse {

// Sums since the counting driver was made or reset, by EntryPoint.
struct DriverCallCounts {
  std::array<uint64_t, kEntryPointCount> calls{};
  std::array<std::chrono::nanoseconds, kEntryPointCount> measured{};  // wall time inside the driver, all threads

  [[nodiscard]] uint64_t TotalCalls() const;
  [[nodiscard]] std::chrono::nanoseconds TotalMeasured() const;
};

// Wraps a driver. Entry points carry no argument that could say which wrapper they belong to, so one at most is alive
// in a process at a time, and it must outlive all users of its table.
//
// Thread-safe. A call through the table costs two clock readings and two atomic additions more than a direct one.
class CountingDriver {
 public:
  // FAILED_PRECONDITION if another one is alive.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<CountingDriver>> Create(const Driver& inner);
  ~CountingDriver();
  CountingDriver(const CountingDriver&) = delete;
  CountingDriver& operator=(const CountingDriver&) = delete;

  // Null members are those that are null in the driver that is wrapped.
  [[nodiscard]] const Driver& driver() const { return table_; }

  // Each figure is exact; figures of different entry points may be read a call apart while other threads call.
  [[nodiscard]] DriverCallCounts counts() const;
  void Reset();

 private:
  CountingDriver() = default;

  Driver table_;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_COUNTING_DRIVER_H_

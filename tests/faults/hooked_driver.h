// A driver table that tells a function of every call before it is made.

#ifndef EXPANSE_TESTS_FAULTS_HOOKED_DRIVER_H_
#define EXPANSE_TESTS_FAULTS_HOOKED_DRIVER_H_

#include <cstdint>
#include <functional>

#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse::faults {

struct DriverCall {
  EntryPoint entry_point;
  AddressRange range;  // of cuMemMap, cuMemUnmap and cuMemSetAccess
};

// Wraps a driver. The calls that describe errors are passed on silently: they are made only after something failed.
//
// One at most is alive in a process at a time, since entry points carry no argument that could say which it is. For
// programs of one thread.
class HookedDriver {
 public:
  using Hook = std::function<void(const DriverCall&)>;

  HookedDriver(const Driver& inner, Hook hook);
  ~HookedDriver();
  HookedDriver(const HookedDriver&) = delete;
  HookedDriver& operator=(const HookedDriver&) = delete;

  [[nodiscard]] const Driver& driver() const { return table_; }

 private:
  Driver table_;
};

}  // namespace expanse::faults

#endif  // EXPANSE_TESTS_FAULTS_HOOKED_DRIVER_H_

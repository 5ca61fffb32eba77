// A shared library with the driver's symbols that answers every call with one result and does nothing, for the tests
// of LoadCudaDriver. Built in several variants:
//   FAKE_ANSWER       what every entry point but cuInit returns
//   FAKE_INIT_ANSWER  what cuInit returns
// and with some symbols renamed on the command line (-DcuMemUnmap=hidden_cuMemUnmap), so that they are missing.

#include "vmm/abi.h"
#include "vmm/driver.h"

namespace expanse {

#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters)                                                 \
  extern "C" abi::Result symbol parameters {                                                                  \
    return static_cast<abi::Result>(EntryPoint::member == EntryPoint::init ? FAKE_INIT_ANSWER : FAKE_ANSWER); \
  }
#include "vmm/driver_entry_points.inc"

}  // namespace expanse

// The situation that every row of the table begins with.

#ifndef EXPANSE_TESTS_DRIVER_SPEC_WORLD_H_
#define EXPANSE_TESTS_DRIVER_SPEC_WORLD_H_

#include <cstddef>
#include <string>
#include <vector>

#include "vmm/abi.h"
#include "vmm/driver.h"
#include "vmm/sim/simulator.h"

namespace expanse::driver_spec {

// A driver with this set up, where g is the granularity:
//
//   a reservation of 8 g at `base`, with
//     handle `one` of g mapped read-write at granule 0,
//     handle `two` of 2 g mapped read-write at granules 1 and 2,
//     nothing at granules 3 to 7;
//   handle `spare` of g, mapped nowhere;
//   device 0's primary context, current; a non-blocking stream and an event in it.
//
// What a row changes for good it notes in the members. Finish then checks that everything is as the members say and
// takes it down in the documented order, and every call of that must succeed.
class World {
 public:
  enum class Start { kNothing, kInitialised, kFull };

  // `simulator` is null for a real driver. Failures to set up are in problems().
  World(const Driver& driver, sim::Simulator* simulator, Start start);

  // Checks and takes down; call once.
  void Finish();
  // What went wrong outside the call that the row is about, one line each.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

  // Notes a problem unless the call succeeded; for the steps that lead to the row's call.
  void Need(int result, const char* what);
  void NeedThat(bool condition, const char* what);

  [[nodiscard]] abi::DevicePtr At(size_t granule) const { return base + granule * g; }
  [[nodiscard]] abi::AllocationProp Prop(int device = 0) const;
  int SetAccess(abi::DevicePtr address, size_t size, int flags = abi::kAccessReadWrite, int device = 0);
  int Map(size_t granule, abi::MemHandle handle, size_t granules = 1);
  // A new reservation or handle, which the row gives back itself.
  abi::DevicePtr Reserve(size_t size, abi::DevicePtr hint = 0);
  abi::MemHandle Create(size_t size);
  size_t FreeMemory();
  // Two reservations of g that follow each other, or false where the driver would not place them so.
  bool ReserveNeighbours(abi::DevicePtr* first, abi::DevicePtr* second);
  // Runs a call without a current context.
  template <typename Call>
  int WithoutContext(Call&& call) {
    abi::Context top = nullptr;
    Need(d.ctx_pop_current(&top), "cuCtxPopCurrent");
    const int result = call();
    Need(d.ctx_push_current(context), "cuCtxPushCurrent");
    return result;
  }
  // Writes through one address and reads through the other. False if other bytes come back; where the driver keeps no
  // bytes, true.
  bool SameBytes(abi::DevicePtr write, abi::DevicePtr read);

  const Driver& d;
  sim::Simulator* const simulator;
  size_t g = size_t{2} << 20;
  int devices = 1;
  abi::DevicePtr base = 0;
  abi::MemHandle one = 0;
  abi::MemHandle two = 0;
  abi::MemHandle spare = 0;  // 0 once released
  abi::Context context = nullptr;
  abi::Stream stream = nullptr;
  abi::Event event = nullptr;
  bool quirk = false;  // the row's quirk is on

  // Which of the first two mappings are there, with which access.
  bool one_mapped = false;
  bool two_mapped = false;
  bool reserved = false;
  bool not_applicable = false;  // the row cannot be tried on this driver

 private:
  void CheckIntact();

  const Start start_;
  std::vector<std::string> problems_;
};

}  // namespace expanse::driver_spec

#endif  // EXPANSE_TESTS_DRIVER_SPEC_WORLD_H_

// A driver that claims too early that work is over, to show that the simulator catches an allocator which believes so.

#ifndef EXPANSE_TESTS_STRESS_LYING_DRIVER_H_
#define EXPANSE_TESTS_STRESS_LYING_DRIVER_H_

#include "vmm/driver.h"

namespace expanse::stress {

enum class Lie {
  kNone,
  kEventsAreComplete,  // every query of an event says yes: an allocator whose epochs are broken
  kWaitsReturnAtOnce,  // no wait waits: an allocator that unmaps too early
  kStreamsHaveNoId,    // cuStreamGetId is missing, as before CUDA 12
};

// The table of `truth` with one lie in it.
[[nodiscard]] Driver LyingDriver(const Driver& truth, Lie lie);

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_LYING_DRIVER_H_

// How long the stress tests run.

#ifndef EXPANSE_TESTS_STRESS_STRESS_SCALE_H_
#define EXPANSE_TESTS_STRESS_STRESS_SCALE_H_

#include <cstdint>

namespace expanse::stress {

// The value of the environment variable EXPANSE_STRESS_SCALE, 1 if it is not set: each program is run this many times
// as often, with other seeds. Ends the process, saying so, where it is not a whole number from 1 to 1000000.
[[nodiscard]] uint64_t StressScale();

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_STRESS_SCALE_H_

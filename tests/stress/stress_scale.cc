#include "tests/stress/stress_scale.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"

namespace expanse::stress {

uint64_t StressScale() {
  const char* value = std::getenv("EXPANSE_STRESS_SCALE");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  if (value == nullptr) return 1;
  uint64_t scale = 0;
  if (!absl::SimpleAtoi(value, &scale) || scale < 1 || scale > 1'000'000) {
    std::cerr << "EXPANSE_STRESS_SCALE=" << value << ": expected a whole number from 1 to 1000000\n";
    std::exit(2);  // NOLINT(concurrency-mt-unsafe): before any thread runs
  }
  return scale;
}

}  // namespace expanse::stress

#include "bench/generate/rng.h"

#include <algorithm>
#include <cmath>

namespace expanse::bench {

uint64_t Rng::Between(uint64_t low, uint64_t high) {
  const uint64_t span = high - low + 1;  // 0 where every 64-bit number is allowed
  if (span == 0) return engine_();
  // Numbers below 2^64 mod span would make the low results likelier than the rest: draw again.
  const uint64_t reject_below = (0 - span) % span;
  uint64_t drawn = engine_();
  while (drawn < reject_below) drawn = engine_();
  return low + drawn % span;
}

double Rng::Fraction() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

uint64_t Rng::LogUniform(uint64_t low, uint64_t high) {
  const double from = std::log2(static_cast<double>(low));
  const double to = std::log2(static_cast<double>(high));
  const auto drawn = static_cast<uint64_t>(std::exp2(from + Fraction() * (to - from)));
  return std::clamp(drawn, low, high);
}

}  // namespace expanse::bench

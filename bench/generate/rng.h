// Random numbers for generators: seeded, and the same on every platform.

#ifndef EXPANSE_BENCH_GENERATE_RNG_H_
#define EXPANSE_BENCH_GENERATE_RNG_H_

#include <cstdint>
#include <random>

namespace expanse::bench {

// The engine is the standard's, which fixes every bit of its output; the distributions are our own, because those of
// the standard differ between libraries. Not thread-safe: each user has its own.
class Rng {
 public:
  explicit Rng(uint64_t seed) : engine_(seed) {}

  // A whole number from `low` to `high`, both included, each equally likely. `low` must not be above `high`.
  [[nodiscard]] uint64_t Between(uint64_t low, uint64_t high);
  // A real number from 0 up to but not including 1.
  [[nodiscard]] double Fraction();
  // A whole number from `low` to `high` whose logarithm is uniform: small ones are as likely per octave as large ones.
  [[nodiscard]] uint64_t LogUniform(uint64_t low, uint64_t high);
  // True with this probability.
  [[nodiscard]] bool Chance(double probability) { return Fraction() < probability; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_RNG_H_

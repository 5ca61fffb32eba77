#include "bench/generate/rng.h"

#include <array>
#include <limits>

#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

TEST(Rng, SameSeedSameNumbers) {
  Rng a(7);
  Rng b(7);
  Rng other(8);
  int differing = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t drawn = a.Between(0, 1'000'000'000);
    EXPECT_EQ(drawn, b.Between(0, 1'000'000'000));
    if (drawn != other.Between(0, 1'000'000'000)) ++differing;
  }
  EXPECT_GT(differing, 90);
}

TEST(Rng, BetweenReachesBothEndsEvenly) {
  Rng rng(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) {
    const uint64_t drawn = rng.Between(10, 16);
    ASSERT_GE(drawn, 10u);
    ASSERT_LE(drawn, 16u);
    ++counts[drawn - 10];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);  // more than five standard deviations
}

TEST(Rng, BetweenTakesTheWidestAndTheNarrowestRange) {
  Rng rng(1);
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(rng.Between(kMax, kMax), kMax);
  EXPECT_NE(rng.Between(0, kMax), rng.Between(0, kMax));
}

TEST(Rng, FractionsAreUniformBelowOne) {
  Rng rng(2);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double drawn = rng.Fraction();
    ASSERT_GE(drawn, 0);
    ASSERT_LT(drawn, 1);
    sum += drawn;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(Rng, LogUniformFillsEachOctaveAlike) {
  Rng rng(3);
  std::array<int, 10> octaves{};
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t drawn = rng.LogUniform(1024, 1024 << 10);
    ASSERT_GE(drawn, 1024u);
    ASSERT_LE(drawn, 1024u << 10);
    size_t octave = 0;
    while (octave < 9 && (drawn >> (octave + 11)) != 0) ++octave;
    ++octaves[octave];
  }
  for (const int count : octaves) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(rng.LogUniform(77, 77), 77u);
}

TEST(Rng, ChanceHasItsProbability) {
  Rng rng(4);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += rng.Chance(0.25) ? 1 : 0;
  EXPECT_NEAR(hits, 25'000, 700);
  EXPECT_FALSE(rng.Chance(0));
  EXPECT_TRUE(rng.Chance(1));
}

}  // namespace
}  // namespace expanse::bench

#include "vmm/sim/vector_clock.h"

#include "gtest/gtest.h"

namespace expanse::sim {
namespace {

TEST(VectorClock, CoversWhatItWasSetTo) {
  VectorClock clock;
  EXPECT_FALSE(clock.Covers({3, 1}));
  clock.Set(3, 5);
  EXPECT_TRUE(clock.Covers({3, 1}));
  EXPECT_TRUE(clock.Covers({3, 5}));
  EXPECT_FALSE(clock.Covers({3, 6}));
  EXPECT_FALSE(clock.Covers({2, 1}));
  EXPECT_EQ(clock.at(99), 0U);
}

TEST(VectorClock, JoinKnowsWhatEitherKnew) {
  VectorClock a, b;
  a.Set(0, 5);
  a.Set(1, 1);
  b.Set(1, 3);
  b.Set(4, 2);
  a.Join(b);
  EXPECT_EQ(a.at(0), 5U);
  EXPECT_EQ(a.at(1), 3U);
  EXPECT_EQ(a.at(4), 2U);
  EXPECT_EQ(b.at(0), 0U);
}

}  // namespace
}  // namespace expanse::sim

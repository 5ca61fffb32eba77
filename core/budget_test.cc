#include "core/budget.h"

#include "gtest/gtest.h"

namespace expanse {
namespace {

TEST(Budget, GivesAllOrNothing) {
  Budget budget(10);
  EXPECT_TRUE(budget.TryTake(7));
  EXPECT_FALSE(budget.TryTake(4));
  EXPECT_EQ(budget.taken(), 7u);
  EXPECT_TRUE(budget.TryTake(3));
  EXPECT_EQ(budget.left(), 0u);
  budget.Give(5);
  EXPECT_EQ(budget.left(), 5u);
}

TEST(Budget, ALimitBelowWhatIsTakenLeavesNothing) {
  Budget budget(10);
  ASSERT_TRUE(budget.TryTake(8));
  budget.set_limit(4);
  EXPECT_EQ(budget.left(), 0u);
  EXPECT_FALSE(budget.TryTake(1));
  EXPECT_TRUE(budget.TryTake(0));
  budget.Give(8);
  EXPECT_EQ(budget.left(), 4u);
}

}  // namespace
}  // namespace expanse

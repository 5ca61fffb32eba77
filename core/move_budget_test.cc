#include "core/move_budget.h"

#include "gtest/gtest.h"

namespace expanse {
namespace {

TEST(MoveBudgetTest, CreationInLargeChunksPaysForMoves) {
  MoveBudget budget;
  EXPECT_EQ(budget.Affordable(), 0u);
  for (int i = 0; i < 100; ++i) budget.Created(MiB(32));
  // 3200 MiB allow 22.4 ms, of which creation has taken 5.448.
  EXPECT_EQ(budget.Affordable(), 16'952'000u / 70'000u);
  budget.Moved(budget.Affordable());
  EXPECT_EQ(budget.Affordable(), 0u);
  EXPECT_EQ(budget.CheckInvariants(), absl::OkStatus());
}

TEST(MoveBudgetTest, CreationInSmallChunksPaysForNone) {
  MoveBudget budget;
  for (int i = 0; i < 1000; ++i) budget.Created(MiB(2));
  EXPECT_EQ(budget.Affordable(), 0u);
}

TEST(MoveBudgetTest, MoreThanIsAllowedIsAnError) {
  MoveBudget budget;
  budget.Created(MiB(32));
  budget.Moved(5);
  EXPECT_FALSE(budget.CheckInvariants().ok());
}

}  // namespace
}  // namespace expanse

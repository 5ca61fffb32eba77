#include "core/fill_plan.h"

#include <vector>

#include "gtest/gtest.h"

namespace expanse {
namespace {

FillPlan PlanOf(const std::vector<uint64_t>& runs) {
  std::vector<SlotRun> slots;
  for (const uint64_t count : runs) slots.push_back(SlotRun{nullptr, 100 * slots.size(), count});
  return FillPlan(slots);
}

TEST(FillPlanTest, TheLargestFitIsAPowerOfTwoThatOneRunHolds) {
  FillPlan plan = PlanOf({3, 7, 2});
  EXPECT_EQ(plan.missing(), 12u);
  EXPECT_EQ(plan.LargestFit(16), 4u);
  EXPECT_EQ(plan.LargestFit(3), 2u);
  EXPECT_TRUE(plan.Add(4));
  EXPECT_EQ(plan.LargestFit(16), 2u) << "7 - 4 are left of the largest";
  EXPECT_FALSE(plan.Add(4));
  EXPECT_EQ(plan.missing(), 8u);
}

TEST(FillPlanTest, ChunksFillRunsFromTheirBegin) {
  FillPlan plan = PlanOf({3, 4});
  EXPECT_TRUE(plan.Add(4));
  EXPECT_TRUE(plan.Add(1));
  EXPECT_TRUE(plan.Add(2));
  EXPECT_EQ(plan.runs()[0].chunks, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(plan.runs()[1].chunks, (std::vector<uint64_t>{4}));
  EXPECT_EQ(plan.missing(), 0u);
  EXPECT_EQ(plan.LargestFit(16), 0u);
  EXPECT_EQ(plan.planned(2), 1u);
  EXPECT_EQ(plan.planned(8), 0u);
  EXPECT_EQ(plan.planned_slots(), 7u);
}

}  // namespace
}  // namespace expanse

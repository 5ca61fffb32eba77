#include "core/idle_queue.h"

#include "core/segment_fixture.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

class IdleQueueTest : public SegmentTest {
 protected:
  static bool All(const IdleExtent&) { return true; }
  std::vector<SlotRun> Select(uint64_t count, SlotRun except = SlotRun()) { return queue_.Select(count, All, except); }
};

TEST_F(IdleQueueTest, LeastRecentlyFreedComesFirst) {
  Block* a = FillAndTake(0, 2, MiB(0), MiB(4));
  Block* b = FillAndTake(2, 2, MiB(4), MiB(4));
  Block* c = FillAndTake(4, 2, MiB(8), MiB(4));
  Release(b);
  Release(c);
  Release(a);
  const std::vector<SlotRun> runs = Select(5);
  // Neighbours that fell idle one after the other are one run.
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].first, 2u);
  EXPECT_EQ(runs[0].count, 4u);
  EXPECT_EQ(runs[1].first, 0u);
  EXPECT_EQ(runs[1].count, 1u);
}

TEST_F(IdleQueueTest, TakesExactlyWhatIsAskedForAndChangesNothing) {
  Release(FillAndTake(0, 6, MiB(0), MiB(12)));
  EXPECT_EQ(Select(4)[0].count, 4u);
  EXPECT_EQ(Select(4)[0].first, 0u);
  EXPECT_EQ(Select(100)[0].count, 6u);
  EXPECT_EQ(queue_.idle_slots(), 6u);
}

TEST_F(IdleQueueTest, SlotsUsedAgainAreSkippedAndComeBackLater) {
  Block* a = FillAndTake(0, 3, MiB(0), MiB(6));
  Block* b = FillAndTake(3, 1, MiB(6), MiB(2));
  Release(a);
  Release(b);
  Block* again = Take(index_.BestFit(MiB(8)), MiB(2), MiB(2));
  std::vector<SlotRun> runs = Select(10);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].first, 0u);
  EXPECT_EQ(runs[1].first, 2u);
  EXPECT_EQ(runs[1].count, 2u);
  Release(again);
  runs = Select(4);
  EXPECT_EQ(runs.back().first, 1u) << "freed last, moved last";
}

TEST_F(IdleQueueTest, ExceptedSlotsAndUnreadyExtentsAreSkipped) {
  Block* a = FillAndTake(0, 2, MiB(0), MiB(4));
  Block* b = FillAndTake(2, 4, MiB(4), MiB(8));
  Release(a);
  epoch_ = 2;
  Release(b);
  std::vector<SlotRun> runs = Select(10, SlotRun{segment_.get(), 1, 3});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].first, 0u);
  EXPECT_EQ(runs[0].count, 1u);
  EXPECT_EQ(runs[1].first, 4u);
  EXPECT_EQ(runs[1].count, 2u);
  runs = queue_.Select(
      10, [](const IdleExtent& extent) { return extent.epoch == 2; }, SlotRun());
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].first, 2u);
  const auto found = queue_.Find([](const IdleExtent& extent) { return extent.epoch == 2; });
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->slots.first, 2u);
  EXPECT_FALSE(queue_.Find([](const IdleExtent& extent) { return extent.epoch == 3; }).has_value());
}

TEST_F(IdleQueueTest, ExtentsWithoutAnIdleSlotAreNotAskedAbout) {
  Block* a = FillAndTake(0, 2, MiB(0), MiB(4));
  Block* b = FillAndTake(2, 2, MiB(4), MiB(4));
  Release(a);
  Release(b);
  Take(index_.BestFit(MiB(8)), MiB(4), MiB(4));
  int asked = 0;
  const auto refuse = [&asked](const IdleExtent&) {
    ++asked;
    return false;
  };
  EXPECT_TRUE(queue_.Select(10, refuse, SlotRun()).empty());
  EXPECT_EQ(asked, 1);
}

TEST_F(IdleQueueTest, StaysShortHoweverOftenMemoryIsReused) {
  Block* block = FillAndTake(0, 8, MiB(0), MiB(16));
  for (int i = 0; i < 5000; ++i) {
    Release(block);
    block = index_.BestFit(MiB(16));
    Take(block, MiB(0), MiB(16));
  }
  EXPECT_LT(queue_.extents(), 200u);
  Release(block);
  queue_.Compact();
  EXPECT_EQ(queue_.extents(), 1u);
  EXPECT_EQ(Select(8)[0].count, 8u);
}

TEST_F(IdleQueueTest, CompactionForgetsASegmentThatIsAllHole) {
  Release(FillAndTake(0, 4, MiB(0), MiB(8)));
  Evict(0, 4);
  queue_.Compact();
  EXPECT_EQ(queue_.extents(), 0u);
}

}  // namespace
}  // namespace expanse

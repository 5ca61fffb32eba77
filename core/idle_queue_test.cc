#include "core/idle_queue.h"

#include <algorithm>
#include <vector>

#include "core/segment_fixture.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

class IdleQueueTest : public SegmentTest {
 protected:
  // The first chunks that cover `count` slots, neighbours as one run.
  std::vector<SlotRun> Select(uint64_t count) {
    std::vector<SlotRun> runs;
    queue_.ForEach([&](const IdleExtent&, const SlotRun& chunk) {
      if (!runs.empty() && runs.back().end() == chunk.first) {
        runs.back().count += chunk.count;
      } else {
        runs.push_back(chunk);
      }
      count -= std::min(count, chunk.count);
      return count > 0;
    });
    return runs;
  }
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

TEST_F(IdleQueueTest, StopsWhenToldAndChangesNothing) {
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

TEST_F(IdleQueueTest, ChunksOfSeveralSlotsAreVisitedWhole) {
  // Three chunks of 4, 2 and 1 slots, of which the second is in use again.
  Release(FillChunksAndTake(0, {4, 2, 1}, MiB(0), MiB(14)));
  Take(index_.BestFit(MiB(14)), MiB(9), MiB(1));
  std::vector<uint64_t> sizes;
  queue_.ForEach([&](const IdleExtent&, const SlotRun& chunk) {
    sizes.push_back(chunk.count);
    return true;
  });
  EXPECT_EQ(sizes, (std::vector<uint64_t>{4, 1}));
  EXPECT_EQ(queue_.idle_slots(), 5u);
}

TEST_F(IdleQueueTest, FindsTheFirstExtentThatIsWanted) {
  Block* a = FillAndTake(0, 2, MiB(0), MiB(4));
  Block* b = FillAndTake(2, 4, MiB(4), MiB(8));
  Release(a);
  epoch_ = 2;
  Release(b);
  const auto found = queue_.Find([](const IdleExtent& extent) { return extent.epoch == 2; });
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->slots.first, 2u);
  EXPECT_FALSE(queue_.Find([](const IdleExtent& extent) { return extent.epoch == 3; }).has_value());
}

TEST_F(IdleQueueTest, ExtentsWithoutAnIdleSlotAreNotVisited) {
  Block* a = FillAndTake(0, 2, MiB(0), MiB(4));
  Block* b = FillAndTake(2, 2, MiB(4), MiB(4));
  Release(a);
  Release(b);
  Take(index_.BestFit(MiB(8)), MiB(4), MiB(4));
  std::vector<uint64_t> visited;
  queue_.ForEach([&](const IdleExtent&, const SlotRun& chunk) {
    visited.push_back(chunk.first);
    return true;
  });
  EXPECT_EQ(visited, (std::vector<uint64_t>{0, 1}));
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

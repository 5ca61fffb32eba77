#include "core/growth_window.h"

#include <random>

#include "core/segment_fixture.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

class GrowthWindowTest : public SegmentTest {
 protected:
  std::optional<GrowthWindow> Find(Bytes size, WindowChoice choice = WindowChoice::kFewestMissing) {
    Segment* segment = segment_.get();
    return FindGrowthWindow(absl::MakeConstSpan(&segment, 1), size, choice);
  }
  Bytes Offset(const GrowthWindow& window) const { return window.range.begin - segment_->range().begin; }
};

TEST_F(GrowthWindowTest, AFreshSegmentGrowsFromItsBegin) {
  const auto window = Find(KiB(5000));
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(Offset(*window), KiB(0));
  EXPECT_EQ(window->missing, 3u);
  EXPECT_EQ(window->idle, 0u);
  EXPECT_FALSE(Find(MiB(21)).has_value());
  EXPECT_TRUE(Find(MiB(20)).has_value());
}

TEST_F(GrowthWindowTest, TheFreeTailBeforeAHoleIsExtendedByTheDeficit) {
  FillAndTake(0, 1, KiB(0), KiB(1024));
  const auto window = Find(KiB(2048));
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(Offset(*window), KiB(1024));
  EXPECT_EQ(window->missing, 1u);
  const std::vector<SlotRun> runs = MissingSlots(*window);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].first, 1u);
}

TEST_F(GrowthWindowTest, AHoleWithFreeEdgesIsFilledBeforeTheEndIsUsed) {
  Block* a = FillAndTake(0, 4, MiB(0), MiB(7));
  Take(index_.BestFit(MiB(1)), MiB(7), MiB(1));
  Release(a);
  Evict(1, 1);  // free 2, hole 2, free 3, used 1, hole 12
  const auto window = Find(MiB(6));
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(Offset(*window), MiB(0));
  EXPECT_EQ(window->missing, 1u);
  EXPECT_EQ(window->idle, 2u);
}

TEST_F(GrowthWindowTest, OfEqualCostsTheLowestAddressWins) {
  Block* a = FillAndTake(0, 5, MiB(0), MiB(10));
  Release(a);
  Take(index_.BestFit(MiB(10)), MiB(4), MiB(6));
  Evict(0, 2);  // hole 4, used 6, hole 10
  const auto window = Find(MiB(4));
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(Offset(*window), MiB(0));
  EXPECT_EQ(Offset(*Find(MiB(5))), MiB(10)) << "only the end has room";
}

TEST_F(GrowthWindowTest, TheTightestWindowOccupiesTheFewestChunks) {
  Block* a = FillAndTake(0, 5, MiB(0), MiB(10));
  Release(a);
  Take(index_.BestFit(MiB(10)), MiB(5), MiB(1));
  Evict(0, 1);
  Evict(4, 1);  // hole 2, free 3, used 1, free 2, hole 12
  // From the hole's begin: one missing and one idle. Around the end of the segment: three missing or more.
  const auto cheapest = Find(MiB(5));
  ASSERT_TRUE(cheapest.has_value());
  EXPECT_EQ(Offset(*cheapest), MiB(0));
  EXPECT_EQ(cheapest->missing, 1u);
  EXPECT_EQ(cheapest->idle, 1u);
  // Four MiB: one missing and one idle at either end of the first gap or after the used block.
  const auto tightest = Find(MiB(4), WindowChoice::kFewestOccupied);
  ASSERT_TRUE(tightest.has_value());
  EXPECT_EQ(tightest->missing + tightest->idle, 2u);
}

// Every candidate measured slot by slot, on random segments.
TEST_F(GrowthWindowTest, AgreesWithExhaustiveSearch) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    segment_ = nullptr;
    queue_ = IdleQueue();
    figures_ = PoolFigures();
    segment_ = MakeSegment(kBegin);
    std::vector<Block*> used = {FillAndTake(0, kSlots - 2, MiB(0), kChunk * (kSlots - 2))};
    for (int i = 0; i < 12; ++i) {
      if (!used.empty() && random() % 2 == 0) {
        const size_t victim = random() % used.size();
        Release(used[victim]);
        used.erase(used.begin() + static_cast<std::ptrdiff_t>(victim));
      } else if (Block* block = index_.BestFit(KiB(512) * (1 + random() % 6)); block != nullptr) {
        const Bytes size = KiB(512) * (1 + random() % (block->size / KiB(512)));
        used.push_back(Take(block, block->begin - segment_->range().begin, size));
      }
    }
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      if (segment_->stamp(slot) != 0 && random() % 2 == 0) Evict(slot, 1);
    }
    for (const Bytes size : {KiB(512), KiB(1536), MiB(3), MiB(5), MiB(8)}) {
      if (index_.BestFit(size) != nullptr) continue;  // growth is only asked for what does not fit
      for (const WindowChoice choice : {WindowChoice::kFewestMissing, WindowChoice::kFewestOccupied}) {
        std::optional<uint64_t> best;
        for (const Block* first = segment_->first_block(); first != nullptr; first = first->next) {
          for (const DeviceAddress begin : {first->begin, first->end() - size}) {
            if (begin < segment_->range().begin || begin + size > segment_->range().end()) continue;
            bool usable = true;
            for (const Block* block = segment_->first_block(); block != nullptr; block = block->next) {
              if (block->state == BlockState::kUsed && block->range().Overlaps({begin, size})) usable = false;
            }
            if (!usable) continue;
            uint64_t cost = 0;
            const uint64_t end = segment_->SlotOf(segment_->SlotCeil(begin + size));
            for (uint64_t slot = segment_->SlotOf(begin); slot < end; ++slot) {
              if (segment_->chunk(slot).is_none()) ++cost;
              if (segment_->stamp(slot) != 0 && choice == WindowChoice::kFewestOccupied) ++cost;
            }
            if (!best || cost < *best) best = cost;
          }
        }
        const auto found = Find(size, choice);
        ASSERT_EQ(found.has_value(), best.has_value()) << Picture();
        if (!found) continue;
        const uint64_t cost = found->missing + (choice == WindowChoice::kFewestOccupied ? found->idle : 0);
        EXPECT_EQ(cost, *best) << Picture() << "; " << size;
        uint64_t missing = 0;
        for (const SlotRun& run : MissingSlots(*found)) missing += run.count;
        EXPECT_EQ(missing, found->missing);
      }
    }
  }
}

}  // namespace
}  // namespace expanse

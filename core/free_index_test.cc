#include "core/free_index.h"

#include <vector>

#include "gtest/gtest.h"

namespace expanse {
namespace {

class FreeIndexTest : public ::testing::Test {
 protected:
  Block* Add(uint64_t begin, uint64_t size) {
    Block* block = arena_.Make();
    block->begin = DeviceAddress(begin);
    block->size = Bytes(size);
    block->state = BlockState::kFree;
    index_.Insert(block);
    EXPECT_EQ(index_.CheckInvariants(), absl::OkStatus());
    return block;
  }

  BlockArena arena_;
  FreeIndex index_;
};

TEST_F(FreeIndexTest, EmptyFitsNothing) {
  EXPECT_EQ(index_.BestFit(Bytes(512)), nullptr);
  EXPECT_EQ(index_.LargestSize(), Bytes());
}

TEST_F(FreeIndexTest, SmallestSufficientBlockFitsBest) {
  Add(0x1000, 512);
  Block* middle = Add(0x2000, 2048);
  Block* large = Add(0x4000, 8192);
  EXPECT_EQ(index_.BestFit(Bytes(1024)), middle);
  EXPECT_EQ(index_.BestFit(Bytes(2048)), middle);
  EXPECT_EQ(index_.BestFit(Bytes(2560)), large);
  EXPECT_EQ(index_.BestFit(Bytes(8704)), nullptr);
  EXPECT_EQ(index_.LargestSize(), Bytes(8192));
}

TEST_F(FreeIndexTest, OfEqualSizesTheLowestAddressWins) {
  Add(0x8000, 1024);
  Block* low = Add(0x1000, 1024);
  Add(0x4000, 1024);
  EXPECT_EQ(index_.BestFit(Bytes(512)), low);
}

// Bins begin at every power of two, and at every sixteenth between two of them.
TEST_F(FreeIndexTest, TheFitIsTheBestWithinAndAcrossBins) {
  std::vector<Block*> blocks;
  for (uint64_t size = 512; size <= (uint64_t{1} << 46); size *= 2) {
    for (const uint64_t more : {uint64_t{0}, uint64_t{512}, size / 32, size / 16, size / 2}) {
      blocks.push_back(Add(0x1000'0000 * (blocks.size() + 1), RoundUp(Bytes(size + more), Bytes(512)).count()));
    }
  }
  for (const Block* wanted : blocks) {
    for (const Bytes size : {wanted->size, wanted->size - Bytes(1), wanted->size + Bytes(1)}) {
      const Block* best = nullptr;
      for (const Block* block : blocks) {
        if (block->size < size) continue;
        if (best == nullptr || block->size < best->size) best = block;
      }
      EXPECT_EQ(index_.BestFit(size), best) << size;
    }
  }
  EXPECT_EQ(index_.LargestSize(), Bytes(3 * (uint64_t{1} << 45)));
}

TEST_F(FreeIndexTest, ErasedBlocksAreGoneAndBytesAreSummed) {
  Block* a = Add(0x1000, 1024);
  Block* b = Add(0x2000, 1024);
  EXPECT_EQ(index_.bytes(), Bytes(2048));
  index_.Erase(a);
  EXPECT_FALSE(index_.Contains(a));
  EXPECT_TRUE(index_.Contains(b));
  EXPECT_EQ(index_.BestFit(Bytes(512)), b);
  EXPECT_EQ(index_.bytes(), Bytes(1024));
  EXPECT_EQ(index_.count(), 1u);
}

TEST_F(FreeIndexTest, ABlockChangedBehindItsBackIsReported) {
  Block* a = Add(0x1000, 1024);
  a->size = Bytes(512);
  EXPECT_EQ(index_.CheckInvariants().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace expanse

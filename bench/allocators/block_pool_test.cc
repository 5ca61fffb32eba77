#include "bench/allocators/block_pool.h"

#include <initializer_list>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

class BlockPoolTest : public testing::Test {
 protected:
  // A segment at `begin` MiB of consecutive blocks, each of so many MiB and in the given state, filed where it belongs.
  struct Piece {
    uint64_t mebibytes;
    BlockState state;
  };
  std::vector<Block*> AddSegment(uint64_t begin, std::initializer_list<Piece> pieces) {
    Bytes size;
    for (const Piece& piece : pieces) size += MiB(piece.mebibytes);
    auto& segment = segments_.emplace_back(std::make_unique<BlockList>(
        AddressRange{DeviceAddress(MiB(begin).count()), size}, &pool_, nullptr, BlockState::kLive));
    std::vector<Block*> blocks;
    Block* rest = &segment->head();
    for (const Piece& piece : pieces) {
      Block* block = rest;
      if (MiB(piece.mebibytes) < block->size) rest = SplitBlock(*block, MiB(piece.mebibytes));
      block->state = piece.state;
      if (piece.state == BlockState::kFree || piece.state == BlockState::kUnmapped) pool_.Insert(*block);
      blocks.push_back(block);
    }
    return blocks;
  }

  BlockPool pool_{StreamHandle(), false};
  std::vector<std::unique_ptr<BlockList>> segments_;
};

constexpr BlockState kFree = BlockState::kFree;
constexpr BlockState kLive = BlockState::kLive;
constexpr BlockState kPending = BlockState::kPending;
constexpr BlockState kUnmapped = BlockState::kUnmapped;

TEST_F(BlockPoolTest, BestFitIsTheSmallestThatFits) {
  auto blocks = AddSegment(100, {{8, kFree}, {1, kLive}, {4, kFree}, {1, kLive}, {6, kFree}});
  EXPECT_EQ(pool_.BestFit(MiB(5)), blocks[4]);
  EXPECT_EQ(pool_.BestFit(MiB(4)), blocks[2]);
  EXPECT_EQ(pool_.BestFit(MiB(7)), blocks[0]);
  EXPECT_EQ(pool_.BestFit(MiB(9)), nullptr);
}

TEST_F(BlockPoolTest, EqualSizesGoToTheLowestAddress) {
  auto high = AddSegment(500, {{4, kFree}, {1, kLive}});
  auto low = AddSegment(100, {{1, kLive}, {4, kFree}});
  EXPECT_EQ(pool_.BestFit(MiB(3)), low[1]);
  EXPECT_EQ(pool_.BestFitKeepingGrowable(MiB(3)), low[1]);
}

TEST_F(BlockPoolTest, ABlockThatCanGrowIsKeptWhereALargerOneCannot) {
  auto growable = AddSegment(100, {{4, kFree}, {100, kUnmapped}});
  auto fixed = AddSegment(300, {{8, kFree}, {1, kLive}});
  EXPECT_EQ(pool_.BestFit(MiB(4)), growable[0]);
  EXPECT_EQ(pool_.BestFitKeepingGrowable(MiB(4)), fixed[0]);
}

TEST_F(BlockPoolTest, TheWalkStopsAtTheFirstBlockThatCouldNotGrowToLess) {
  auto growable = AddSegment(100, {{4, kFree}, {100, kUnmapped}});
  // Could grow to more than the first: the walk ends before the 9 MiB block behind it in the order.
  AddSegment(300, {{8, kFree}, {100, kUnmapped}});
  AddSegment(500, {{9, kFree}, {1, kLive}});
  EXPECT_EQ(pool_.BestFitKeepingGrowable(MiB(4)), growable[0]);
}

TEST_F(BlockPoolTest, FreedNeighboursCoalesce) {
  auto blocks = AddSegment(100, {{2, kFree}, {3, kLive}, {4, kFree}, {5, kUnmapped}});
  Block& whole = pool_.Coalesce(*blocks[1], kFree);
  EXPECT_EQ(&whole, blocks[0]);
  EXPECT_EQ(whole.size, MiB(9));
  EXPECT_EQ(whole.next, blocks[3]);
  EXPECT_EQ(pool_.free().size(), 1);
  EXPECT_EQ(pool_.unmapped().size(), 1);
}

TEST_F(BlockPoolTest, LiveAndPendingNeighboursStayApart) {
  auto blocks = AddSegment(100, {{2, kPending}, {3, kLive}, {4, kLive}});
  Block& whole = pool_.Coalesce(*blocks[1], kFree);
  EXPECT_EQ(&whole, blocks[1]);
  EXPECT_EQ(whole.size, MiB(3));
}

TEST_F(BlockPoolTest, UnmappedNeighboursCoalesceWithEachOtherOnly) {
  auto blocks = AddSegment(100, {{2, kFree}, {3, kLive}, {4, kUnmapped}});
  Block& whole = pool_.Coalesce(*blocks[1], kUnmapped);
  EXPECT_EQ(&whole, blocks[1]);
  EXPECT_EQ(whole.size, MiB(7));
  EXPECT_EQ(pool_.free().size(), 1);
}

TEST_F(BlockPoolTest, SplittingKeepsTheListWhole) {
  auto blocks = AddSegment(100, {{6, kLive}, {1, kLive}});
  Block* rest = SplitBlock(*blocks[0], MiB(2));
  EXPECT_EQ(blocks[0]->size, MiB(2));
  EXPECT_EQ(rest->address, DeviceAddress(MiB(102).count()));
  EXPECT_EQ(rest->size, MiB(4));
  EXPECT_EQ(rest->prev, blocks[0]);
  EXPECT_EQ(rest->next, blocks[1]);
  EXPECT_EQ(blocks[1]->prev, rest);
  EXPECT_FALSE(segments_[0]->IsWhole());
}

}  // namespace
}  // namespace expanse::bench

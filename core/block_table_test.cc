#include "core/block_table.h"

#include <deque>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace expanse {
namespace {

class BlockTableTest : public ::testing::Test {
 protected:
  Block* Make(uint64_t begin) {
    Block& block = blocks_.emplace_back();
    block.begin = DeviceAddress(begin);
    return &block;
  }
  void Check() const { ASSERT_EQ(table_.CheckInvariants(), absl::OkStatus()); }

  std::deque<Block> blocks_;
  BlockTable table_;
};

TEST_F(BlockTableTest, EmptyItHasNothing) {
  EXPECT_EQ(table_.Find(DeviceAddress(512)), nullptr);
  EXPECT_EQ(table_.Take(DeviceAddress(512)), nullptr);
  EXPECT_EQ(table_.size(), 0u);
  Check();
}

// Addresses of few strides collide in whatever way they like.
TEST_F(BlockTableTest, FindsWhatIsInItAndNothingElse) {
  std::mt19937_64 random(3);
  std::map<uint64_t, Block*> reference;
  const uint64_t strides[] = {512, 1 << 21, 3 << 20, uint64_t{1} << 32};
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t begin = 0x7f00'0000'0000 + strides[random() % 4] * (random() % 200);
    const auto known = reference.find(begin);
    EXPECT_EQ(table_.Find(DeviceAddress(begin)), known == reference.end() ? nullptr : known->second);
    if (known != reference.end()) {
      ASSERT_EQ(table_.Take(DeviceAddress(begin)), known->second);
      reference.erase(known);
    } else {
      reference[begin] = Make(begin);
      table_.Insert(reference[begin]);
    }
    ASSERT_EQ(table_.size(), reference.size());
    if (i % 16 == 0) Check();
  }
  size_t visited = 0;
  table_.ForEach([&](Block* block) {
    ++visited;
    EXPECT_EQ(reference.at(block->begin.value()), block);
  });
  EXPECT_EQ(visited, reference.size());
}

TEST_F(BlockTableTest, GrowsAndEmptiesAgain) {
  std::vector<Block*> blocks;
  for (uint64_t i = 1; i <= 5000; ++i) {
    blocks.push_back(Make(i << 21));
    table_.Insert(blocks.back());
  }
  Check();
  for (const Block* block : blocks) ASSERT_EQ(table_.Take(block->begin), block);
  EXPECT_EQ(table_.size(), 0u);
  Check();
}

TEST_F(BlockTableTest, ABlockThatMovedIsReported) {
  Block* block = Make(4096);
  table_.Insert(block);
  Check();
  block->begin = DeviceAddress(8192);
  EXPECT_EQ(table_.CheckInvariants().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace expanse

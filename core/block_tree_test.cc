#include "core/block_tree.h"

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace expanse {
namespace {

class BlockTreeTest : public ::testing::Test {
 protected:
  Block* Make(uint64_t begin, uint64_t size) {
    Block& block = blocks_.emplace_back();
    block.begin = DeviceAddress(begin);
    block.size = Bytes(size);
    return &block;
  }
  void Check() const { ASSERT_EQ(tree_.CheckInvariants(), absl::OkStatus()); }

  std::deque<Block> blocks_;
  BlockTree tree_;
};

int HeightOf(const Block* block) {
  return block == nullptr ? 0 : 1 + std::max(HeightOf(block->smaller), HeightOf(block->larger));
}

const Block* RootOf(const BlockTree& tree) {
  const Block* root = nullptr;
  tree.ForEach([&](const Block& block) {
    if (root == nullptr || HeightOf(&block) > HeightOf(root)) root = &block;
  });
  return root;
}

TEST_F(BlockTreeTest, KeepsTheOrderOfSizeAndAddressWhateverHappens) {
  std::mt19937_64 random(7);
  std::set<std::pair<uint64_t, uint64_t>> reference;  // by size and address
  std::vector<Block*> inside;
  for (uint64_t i = 1; i <= 2000; ++i) {
    if (inside.empty() || random() % 5 < 3) {
      inside.push_back(Make(512 * i, 512 * (1 + random() % 40)));
      tree_.Insert(inside.back());
      reference.emplace(inside.back()->size.count(), inside.back()->begin.value());
    } else {
      std::swap(inside[random() % inside.size()], inside.back());
      EXPECT_TRUE(tree_.Contains(inside.back()));
      tree_.Erase(inside.back());
      EXPECT_FALSE(tree_.Contains(inside.back()));
      reference.erase({inside.back()->size.count(), inside.back()->begin.value()});
      inside.pop_back();
    }
    Check();
    const uint64_t wanted = 512 * (random() % 45);
    const auto fit = reference.lower_bound({wanted, 0});
    const Block* found = tree_.BestFit(Bytes(wanted));
    ASSERT_EQ(found != nullptr, fit != reference.end());
    if (found != nullptr) {
      EXPECT_EQ(std::pair(found->size.count(), found->begin.value()), *fit);
    }
    ASSERT_EQ(tree_.empty(), reference.empty());
    if (reference.empty()) continue;
    EXPECT_EQ(tree_.First()->begin.value(), reference.begin()->second);
    EXPECT_EQ(tree_.Last()->begin.value(), reference.rbegin()->second);
  }
}

// Blocks of one size in a row of addresses are what a training step frees.
TEST_F(BlockTreeTest, StaysFlatWhenBlocksComeInOrder) {
  for (const uint64_t stride : {512ULL, 1ULL << 21, 3ULL << 20, 1ULL << 30}) {
    BlockTree tree;
    for (uint64_t i = 0; i < 4096; ++i) tree.Insert(Make(0x7f00'0000'0000 + i * stride, 4096));
    EXPECT_LE(HeightOf(RootOf(tree)), 48) << "four times the least, at a stride of " << stride;
  }
}

TEST_F(BlockTreeTest, ABlockThatWasChangedInsideIsReported) {
  Block* a = Make(512, 1024);
  Block* b = Make(4096, 2048);
  tree_.Insert(a);
  tree_.Insert(b);
  Check();
  a->size = Bytes(4096);
  EXPECT_EQ(tree_.CheckInvariants().code(), absl::StatusCode::kInternal);
  a->size = Bytes(1024);
  a->priority = ~a->priority;
  EXPECT_EQ(tree_.CheckInvariants().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace expanse

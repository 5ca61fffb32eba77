#include "core/size_class.h"

#include "gtest/gtest.h"

namespace expanse {
namespace {

TEST(SizeClassTest, SmallBlocksAreAlwaysApart) {
  EXPECT_EQ(SizeClassOf(Bytes(512), true), 0);
  EXPECT_EQ(SizeClassOf(MiB(1), true), 0);
  EXPECT_EQ(SizeClassOf(MiB(1), false), 0);
}

TEST(SizeClassTest, LargeBlocksShareAClassWhileMemoryIsPlentiful) {
  for (const Bytes size : {MiB(1) + Bytes(512), MiB(64), MiB(65), GiB(8)}) EXPECT_EQ(SizeClassOf(size, true), 1);
}

TEST(SizeClassTest, TheyAreApartBySizeOnceItIsNot) {
  EXPECT_EQ(SizeClassOf(MiB(1) + Bytes(512), false), 1);
  EXPECT_EQ(SizeClassOf(MiB(16), false), 1);
  EXPECT_EQ(SizeClassOf(MiB(16) + Bytes(512), false), 2);
  EXPECT_EQ(SizeClassOf(MiB(64), false), 2);
  EXPECT_EQ(SizeClassOf(MiB(64) + Bytes(512), false), 3);
}

TEST(SizeClassTest, MemoryIsPlentifulUntilAnEighthIsLeft) {
  EXPECT_TRUE(IsPlentiful(Bytes(), GiB(16)));
  EXPECT_TRUE(IsPlentiful(GiB(14) - MiB(2), GiB(2) + MiB(2)));
  EXPECT_FALSE(IsPlentiful(GiB(14), GiB(2)));
  EXPECT_FALSE(IsPlentiful(GiB(16), Bytes()));
}

TEST(SizeClassTest, SmallLimitsKeepOneClassForAllLargeBlocks) {
  EXPECT_TRUE(IsPlentiful(GiB(8) - MiB(2), Bytes()));
  EXPECT_FALSE(IsPlentiful(GiB(8), Bytes()));
}

// As slots of 2 MiB.
uint64_t Largest(Bytes block, Bytes held, Bytes left) { return LargestChunk(block, held, left, MiB(2)); }

TEST(LargestChunkTest, GrowsWithWhatIsHeld) {
  EXPECT_EQ(Largest(MiB(4), Bytes(), TiB(1)), 1u);
  EXPECT_EQ(Largest(MiB(4), MiB(128), TiB(1)), 2u);
  EXPECT_EQ(Largest(MiB(4), MiB(512), TiB(1)), 8u);
  EXPECT_EQ(Largest(MiB(4), MiB(1000), TiB(1)), 8u) << "a power of two";
  EXPECT_EQ(Largest(MiB(4), GiB(16), TiB(1)), 16u) << "never more than 32 MiB";
}

TEST(LargestChunkTest, IsUpToAQuarterOfTheBlockItself) {
  EXPECT_EQ(Largest(MiB(64), Bytes(), TiB(1)), 8u);
  EXPECT_EQ(Largest(MiB(63), Bytes(), TiB(1)), 4u);
}

TEST(LargestChunkTest, ShrinksWithWhatIsLeft) {
  EXPECT_EQ(Largest(GiB(1), GiB(8), MiB(2) * 3072 * 8), 8u);
  EXPECT_EQ(Largest(GiB(1), GiB(8), MiB(2) * 3072), 1u);
  EXPECT_EQ(Largest(GiB(1), GiB(8), Bytes()), 1u) << "there is always a smallest one";
}

TEST(LargestChunkTest, IsTheSmallestForSmallBlocks) { EXPECT_EQ(Largest(MiB(1), GiB(8), TiB(1)), 1u); }

TEST(MergedChunkTest, GrowsWithWhatTheWorkloadLeaves) {
  EXPECT_EQ(MergedChunk(GiB(1), MiB(4) * 224 - Bytes(1), MiB(2)), 1u);
  EXPECT_EQ(MergedChunk(GiB(1), MiB(4) * 224, MiB(2)), 2u);
  EXPECT_EQ(MergedChunk(GiB(1), TiB(1), MiB(2)), 16u) << "never more than 32 MiB";
  EXPECT_EQ(MergedChunk(MiB(16), TiB(1), MiB(2)), 2u) << "a quarter of the block";
  EXPECT_EQ(MergedChunk(Bytes(512), Bytes(), MiB(2)), 1u);
}

}  // namespace
}  // namespace expanse

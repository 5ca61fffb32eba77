#include "bench/allocators/pytorch_rules.h"

#include "gtest/gtest.h"

namespace expanse::bench::pytorch {
namespace {

TEST(PytorchRules, RequestsAreMultiplesOf512Bytes) {
  EXPECT_EQ(RoundRequest(Bytes(1)), Bytes(512));
  EXPECT_EQ(RoundRequest(Bytes(512)), Bytes(512));
  EXPECT_EQ(RoundRequest(Bytes(513)), Bytes(1024));
  EXPECT_EQ(RoundRequest(kLargestRequest), kLargestRequest);
}

TEST(PytorchRules, OneMebibyteIsStillSmall) {
  EXPECT_TRUE(IsSmall(MiB(1)));
  EXPECT_FALSE(IsSmall(MiB(1) + Bytes(512)));
}

TEST(PytorchRules, SegmentsFollowTheRequest) {
  EXPECT_EQ(SegmentSize(Bytes(512)), MiB(2));
  EXPECT_EQ(SegmentSize(MiB(1)), MiB(2));
  EXPECT_EQ(SegmentSize(MiB(1) + Bytes(512)), MiB(20));
  EXPECT_EQ(SegmentSize(MiB(10) - Bytes(512)), MiB(20));
  EXPECT_EQ(SegmentSize(MiB(10)), MiB(10));
  EXPECT_EQ(SegmentSize(MiB(10) + Bytes(512)), MiB(12));
  EXPECT_EQ(SegmentSize(MiB(101)), MiB(102));
}

}  // namespace
}  // namespace expanse::bench::pytorch

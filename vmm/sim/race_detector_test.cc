#include "vmm/sim/race_detector.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::sim {
namespace {

using ::testing::HasSubstr;

constexpr AllocationId kMemory{7};

// Streams are slots 0, 1, ...; each keeps its own clock, and `Order` is an event between two of them.
class RaceDetectorTest : public ::testing::Test {
 protected:
  std::vector<Race> Touch(uint32_t stream, bool writes, uint64_t begin, uint64_t end,
                          AllocationId allocation = kMemory) {
    std::vector<Race> races;
    VectorClock& clock = clocks_[stream];
    const Epoch epoch{stream, clock.at(stream) + 1};
    detector_.Touch(PhysicalExtent{allocation, Bytes(begin), Bytes(end - begin)}, writes,
                    WorkRef{++work_, StreamId{stream}, "test"}, epoch, clock, races);
    clock.Set(stream, epoch.tick);
    EXPECT_TRUE(detector_.CheckInvariants().ok()) << detector_.CheckInvariants();
    return races;
  }
  std::vector<Race> Write(uint32_t stream, uint64_t begin, uint64_t end) { return Touch(stream, true, begin, end); }
  std::vector<Race> Read(uint32_t stream, uint64_t begin, uint64_t end) { return Touch(stream, false, begin, end); }
  void Order(uint32_t first, uint32_t then) { clocks_[then].Join(clocks_[first]); }

  RaceDetector detector_;
  std::vector<VectorClock> clocks_{4};
  uint64_t work_ = 0;
};

TEST_F(RaceDetectorTest, TwoUnorderedWritesRace) {
  EXPECT_TRUE(Write(0, 0, 100).empty());
  const std::vector<Race> races = Write(1, 50, 150);
  ASSERT_EQ(races.size(), 1U);
  EXPECT_EQ(races[0].earlier.number, 1U);
  EXPECT_EQ(races[0].later.number, 2U);
  EXPECT_EQ(races[0].bytes.offset, Bytes(50));
  EXPECT_EQ(races[0].bytes.size, Bytes(50));
  EXPECT_THAT(races[0].ToString(), HasSubstr("work 1 (test) on stream 0 writes and work 2 (test) on stream 1 writes "
                                             "bytes [50, 100) of allocation 7"));
}

TEST_F(RaceDetectorTest, ReadAfterWriteAndWriteAfterReadRace) {
  EXPECT_TRUE(Write(0, 0, 10).empty());
  EXPECT_EQ(Read(1, 0, 10).size(), 1U);
  EXPECT_TRUE(Read(2, 20, 30).empty());
  const std::vector<Race> races = Write(3, 20, 30);
  ASSERT_EQ(races.size(), 1U);
  EXPECT_FALSE(races[0].earlier_writes);
  EXPECT_TRUE(races[0].later_writes);
}

TEST_F(RaceDetectorTest, ReadsDoNotRaceWithEachOther) {
  EXPECT_TRUE(Read(0, 0, 10).empty());
  EXPECT_TRUE(Read(1, 0, 10).empty());
  EXPECT_TRUE(Read(2, 0, 10).empty());
}

TEST_F(RaceDetectorTest, AWriteRacesWithEveryUnorderedRead) {
  EXPECT_TRUE(Read(0, 0, 10).empty());
  EXPECT_TRUE(Read(1, 0, 10).empty());
  EXPECT_TRUE(Read(2, 0, 10).empty());
  Order(1, 3);
  const std::vector<Race> races = Write(3, 0, 10);
  ASSERT_EQ(races.size(), 2U);
  EXPECT_EQ(races[0].earlier.stream, StreamId{0});
  EXPECT_EQ(races[1].earlier.stream, StreamId{2});
}

TEST_F(RaceDetectorTest, OrderIsTransitive) {
  EXPECT_TRUE(Write(0, 0, 10).empty());
  Order(0, 1);
  Order(1, 2);
  EXPECT_TRUE(Write(2, 0, 10).empty());
}

TEST_F(RaceDetectorTest, AnOldOrderDoesNotCoverLaterWork) {
  EXPECT_TRUE(Write(0, 0, 10).empty());
  Order(0, 1);
  EXPECT_TRUE(Write(0, 0, 10).empty());
  EXPECT_EQ(Write(1, 0, 10).size(), 1U);
}

TEST_F(RaceDetectorTest, AReadOrderedAfterAnotherStandsForIt) {
  EXPECT_TRUE(Read(0, 0, 10).empty());
  Order(0, 1);
  EXPECT_TRUE(Read(1, 0, 10).empty());
  EXPECT_EQ(detector_.size(), 1U);
  Order(1, 2);
  EXPECT_TRUE(Write(2, 0, 10).empty());
}

TEST_F(RaceDetectorTest, OtherBytesAndOtherAllocationsDoNotRace) {
  EXPECT_TRUE(Write(0, 0, 10).empty());
  EXPECT_TRUE(Write(1, 10, 20).empty());
  EXPECT_TRUE(Touch(2, true, 0, 10, AllocationId{8}).empty());
}

TEST_F(RaceDetectorTest, APairIsReportedOnce) {
  EXPECT_TRUE(Write(0, 0, 100).empty());
  EXPECT_TRUE(Write(0, 40, 50).empty());
  EXPECT_EQ(Write(1, 0, 100).size(), 2U);  // Work 1 on both sides of work 2.
}

TEST_F(RaceDetectorTest, WorkDoesNotRaceWithItself) {
  std::vector<Race> races;
  const Epoch epoch{0, 1};
  const WorkRef work{1, StreamId{0}, "test"};
  for (const bool writes : {false, true, true, false}) {
    detector_.Touch(PhysicalExtent{kMemory, Bytes(0), Bytes(10)}, writes, work, epoch, clocks_[0], races);
  }
  EXPECT_TRUE(races.empty());
}

TEST_F(RaceDetectorTest, ForgottenMemoryRacesWithNothing) {
  EXPECT_TRUE(Write(0, 0, 10).empty());
  detector_.Forget(kMemory);
  EXPECT_EQ(detector_.size(), 0U);
  EXPECT_TRUE(Write(1, 0, 10).empty());
}

TEST_F(RaceDetectorTest, SweepsOnlyWhatTheHostKnows) {
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(Write(0, 20 * i, 20 * i + 10).empty());
  const VectorClock host = clocks_[0];
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(Read(1, 20 * i + 10, 20 * i + 20).empty());
  EXPECT_EQ(detector_.size(), 200U);
  detector_.Sweep(host);
  EXPECT_EQ(detector_.size(), 100U);
  EXPECT_TRUE(detector_.CheckInvariants().ok());
  EXPECT_EQ(Write(2, 0, 20).size(), 1U) << "the read is still remembered, the write is not";
}

}  // namespace
}  // namespace expanse::sim

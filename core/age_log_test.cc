#include "core/age_log.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace expanse {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AgeLogTest : public ::testing::Test {
 protected:
  bool Note(AgeLog::Time now, uint64_t frees, Bytes spare = Bytes()) {
    const bool begins = log_.Note(now, frees, spare);
    EXPECT_EQ(log_.CheckInvariants(), absl::OkStatus());
    return begins;
  }

  AgeLog log_{seconds(8)};
};

TEST_F(AgeLogTest, NothingIsOldBeforeTheAgeHasPassed) {
  EXPECT_EQ(log_.Find().frees, 0u);
  for (uint64_t now = 0; now < 8; ++now) {
    EXPECT_TRUE(Note(seconds(now), now + 1, MiB(2)));
    EXPECT_EQ(log_.Find().frees, 0u) << now;
    EXPECT_EQ(log_.Find().spare, Bytes()) << now;
  }
  Note(seconds(8), 9, MiB(2));
  EXPECT_EQ(log_.Find().frees, 1u);
  EXPECT_EQ(log_.Find().spare, MiB(2));
}

TEST_F(AgeLogTest, FreesUpToAnEighthTooYoungAreTheLastThatAreOld) {
  for (uint64_t step = 0; step < 400; ++step) {
    const auto now = milliseconds(step * 100);
    Note(now, step);
    const uint64_t frees = log_.Find().frees;
    EXPECT_LE(frees + 80, std::max<uint64_t>(step, 80)) << "too young";
    EXPECT_GE(frees + 90, step) << "old for long";
  }
}

TEST_F(AgeLogTest, AfterALongSilenceAllThatWasFreedBeforeItIsOld) {
  Note(seconds(0), 10);
  Note(milliseconds(900), 17);
  EXPECT_TRUE(Note(seconds(1000), 18));
  EXPECT_EQ(log_.Find().frees, 17u);
}

TEST_F(AgeLogTest, SpareMemoryIsOldAsFarAsItWasNeverTaken) {
  Note(seconds(0), 0, MiB(10));
  log_.NoteSpare(MiB(6));
  log_.NoteSpare(MiB(20));
  Note(seconds(8), 0, MiB(20));
  EXPECT_EQ(log_.Find().spare, MiB(6));
  for (int now = 9; now < 16; ++now) Note(seconds(now), 0, MiB(20));
  EXPECT_EQ(log_.Find().spare, MiB(6)) << "that was less than 16 seconds ago";
  Note(seconds(16), 0, MiB(20));
  EXPECT_EQ(log_.Find().spare, MiB(20));
}

TEST_F(AgeLogTest, WithinASpanOnlyTheEndMoves) {
  EXPECT_TRUE(Note(seconds(0), 1));
  EXPECT_FALSE(Note(milliseconds(999), 2));
  EXPECT_TRUE(Note(seconds(1), 3));
}

TEST(AgeLog, AClockThatStandsStillOrGoesBackMakesNothingOldAndNothingGrow) {
  AgeLog log(AgeLog::Time(1));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(log.Note(seconds(5 - i % 2), static_cast<uint64_t>(i), Bytes()), i == 0);
    EXPECT_EQ(log.Find().frees, 0u);
  }
}

}  // namespace
}  // namespace expanse

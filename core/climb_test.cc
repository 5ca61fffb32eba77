#include "core/climb.h"

#include "gtest/gtest.h"

namespace expanse {
namespace {

TEST(Climb, OthersAreAskedAgainOnlyAfterSomethingHappened) {
  Climb climb(0);
  EXPECT_TRUE(climb.MayAskOthers());
  climb.NoteOthersAsked();
  EXPECT_FALSE(climb.MayAskOthers());
  climb.NoteWaited();
  EXPECT_TRUE(climb.MayAskOthers());
  climb.NoteOthersAsked();
  climb.NoteCalled(false);
  EXPECT_TRUE(climb.MayAskOthers());
  EXPECT_EQ(climb.others_asked_times(), 2);
}

TEST(Climb, CallbacksThatAlwaysAskToTryAgainAreCalledAFewTimes) {
  Climb climb(0);
  int rounds = 0;
  for (; climb.MayCall(); ++rounds) climb.NoteCalled(true);
  EXPECT_EQ(rounds, Climb::kCallbackRounds);
}

TEST(Climb, CallbacksThatGiveUpAreNotCalledAgain) {
  Climb climb(0);
  climb.NoteCalled(true);
  EXPECT_TRUE(climb.MayCall());
  climb.NoteCalled(false);
  EXPECT_FALSE(climb.MayCall());
  EXPECT_EQ(climb.callback_rounds(), 2);
}

TEST(Climb, AllThatWasFreedBeforeTheWaitIsWaitedForAndWhatOthersFreeMeanwhileABoundedNumberOfTimes) {
  Climb climb(0);
  for (uint64_t number = 1; number <= 100; ++number) EXPECT_TRUE(climb.MayWaitFor(number, 100));
  uint64_t latest = 100;
  int more = 0;
  while (climb.MayWaitFor(latest + 1, latest + 1)) {
    ++latest;
    ++more;
  }
  EXPECT_EQ(more, Climb::kHorizons - 1);
  EXPECT_TRUE(climb.MayWaitFor(latest, latest + 10)) << "within what was seen already";
}

TEST(Climb, TheContextIsSynchronisedABoundedNumberOfTimes) {
  Climb climb(0);
  int waits = 0;
  for (; climb.MayWaitForContext(); ++waits) climb.NoteWaitedForContext();
  EXPECT_EQ(waits, Climb::kContextWaits);
}

}  // namespace
}  // namespace expanse

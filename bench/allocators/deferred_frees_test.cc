#include "bench/allocators/deferred_frees.h"

#include <chrono>
#include <vector>

#include "bench/allocators/rival_test_support.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using std::chrono::microseconds;

class DeferredFreesTest : public RivalTest {
 protected:
  void SetUp() override { SetUpDevice(MiB(64)); }

  // The blocks that came back.
  std::vector<Block*> Collect(DeferredFrees& frees) {
    std::vector<Block*> done;
    EXPECT_TRUE(frees.Collect([&](Block& block) { done.push_back(&block); }).ok());
    return done;
  }
  void Busy(StreamHandle stream, microseconds duration) {
    EXPECT_EQ(simulator_->Launch(stream, duration, {}), abi::kSuccess);
  }
};

TEST_F(DeferredFreesTest, ABlockComesBackWhenEveryStreamIsDone) {
  DeferredFrees frees(driver());
  const StreamHandle fast = NewStream();
  const StreamHandle slow = NewStream();
  Busy(fast, microseconds(10'000));
  Busy(slow, microseconds(90'000));
  Block block;
  block.uses = {fast, slow};
  ASSERT_TRUE(frees.Defer(block).ok());
  EXPECT_EQ(frees.queued(), 2);
  EXPECT_TRUE(block.uses.empty());
  EXPECT_TRUE(Collect(frees).empty());
  simulator_->Advance(microseconds(50'000));
  EXPECT_TRUE(Collect(frees).empty());
  EXPECT_EQ(frees.queued(), 1);
  simulator_->Advance(microseconds(50'000));
  EXPECT_EQ(Collect(frees), std::vector<Block*>{&block});
  EXPECT_TRUE(frees.empty());
}

TEST_F(DeferredFreesTest, WorkQueuedAfterTheFreeDoesNotHoldTheBlock) {
  DeferredFrees frees(driver());
  const StreamHandle stream = NewStream();
  Block block;
  block.uses = {stream};
  ASSERT_TRUE(frees.Defer(block).ok());
  Busy(stream, microseconds(90'000));
  EXPECT_EQ(Collect(frees), std::vector<Block*>{&block});
}

TEST_F(DeferredFreesTest, NothingIsAskedAboutBehindAnEventThatIsNotComplete) {
  DeferredFrees frees(driver());
  const StreamHandle stream = NewStream();
  Busy(stream, microseconds(90'000));
  Block blocks[3];
  for (Block& block : blocks) {
    block.uses = {stream};
    ASSERT_TRUE(frees.Defer(block).ok());
  }
  EXPECT_TRUE(Collect(frees).empty());
  EXPECT_EQ(Calls(EntryPoint::event_query), 1);
}

TEST_F(DeferredFreesTest, WaitForAllWaits) {
  DeferredFrees frees(driver());
  const StreamHandle stream = NewStream();
  Busy(stream, microseconds(90'000));
  Block block;
  block.uses = {stream};
  ASSERT_TRUE(frees.Defer(block).ok());
  int done = 0;
  ASSERT_TRUE(frees.WaitForAll([&](Block&) { ++done; }).ok());
  EXPECT_EQ(done, 1);
  EXPECT_GE(simulator_->now(), microseconds(90'000));
}

TEST_F(DeferredFreesTest, EventsAreUsedAgain) {
  DeferredFrees frees(driver());
  const StreamHandle stream = NewStream();
  for (int i = 0; i < 5; ++i) {
    Block block;
    block.uses = {stream};
    ASSERT_TRUE(frees.Defer(block).ok());
    EXPECT_EQ(Collect(frees).size(), 1);
  }
  EXPECT_EQ(Calls(EntryPoint::event_create), 1);
}

TEST_F(DeferredFreesTest, AFailedDeferChangesNothing) {
  DeferredFrees frees(driver());
  const StreamHandle a = NewStream();
  const StreamHandle b = NewStream();
  for (EntryPoint refused : {EntryPoint::event_create, EntryPoint::event_record}) {
    Block block;
    block.uses = {a, b};
    simulator_->FailNthCall(refused, 2, abi::kUnknown);
    EXPECT_EQ(frees.Defer(block).code(), absl::StatusCode::kInternal);
    EXPECT_TRUE(frees.empty());
    EXPECT_EQ(block.events, 0);
    EXPECT_EQ(block.uses.size(), 2);
    simulator_->ClearFaults();
  }
}

}  // namespace
}  // namespace expanse::bench

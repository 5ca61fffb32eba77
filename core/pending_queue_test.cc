#include "core/pending_queue.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two streams, of which the second runs for longer, and three blocks.
class PendingQueueTest : public SimulatedDeviceTest {
 protected:
  void SetUp() override {
    SimulatedDeviceTest::SetUp();
    const Driver& driver = simulator->driver();
    ASSERT_EQ(driver.ctx_set_current(device->context()), abi::kSuccess);
    events_.emplace(*device);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(driver.stream_create(&raw_[i], abi::kStreamNonBlocking), abi::kSuccess);
      ASSERT_EQ(simulator->Launch(StreamHandle(raw_[i]), milliseconds(10 * (i + 1)), {}), abi::kSuccess);
      streams_.push_back(std::make_shared<StreamState>(StreamKey::Of(StreamHandle(raw_[i]))));
    }
  }
  void TearDown() override {
    queue_ = PendingQueue();
    streams_.clear();
    events_.reset();
    for (abi::Stream raw : raw_) EXPECT_EQ(simulator->driver().stream_destroy(raw), abi::kSuccess);
    SimulatedDeviceTest::TearDown();
  }
  // A block that waits for the present work of these streams.
  Block* Push(const std::vector<int>& streams) {
    Block* block = arena_.Make();
    block->size = kGranule;
    block->state = BlockState::kPending;
    PendingBlock pending{block, {}, ++number_};
    for (int i : streams) pending.tickets.push_back(Ticket{streams_[i], streams_[i]->current_epoch()});
    queue_.Push(std::move(pending));
    Check();
    return block;
  }
  PendingQueue::Blocks TakeCompleteAtFront() {
    CompletionCheck completion(*events_, *device);
    PendingQueue::Blocks taken = queue_.TakeCompleteAtFront(completion);
    EXPECT_EQ(completion.status(), absl::OkStatus());
    Check();
    return taken;
  }
  PendingQueue::Blocks TakeComplete() {
    CompletionCheck completion(*events_, *device);
    PendingQueue::Blocks taken = queue_.TakeComplete(completion);
    EXPECT_EQ(completion.status(), absl::OkStatus());
    Check();
    return taken;
  }
  void Check() const { ASSERT_EQ(queue_.CheckInvariants(), absl::OkStatus()); }

  abi::Stream raw_[2] = {};
  std::optional<EventPool> events_;
  std::vector<std::shared_ptr<StreamState>> streams_;
  BlockArena arena_;
  uint64_t number_ = 0;
  PendingQueue queue_;
};

TEST_F(PendingQueueTest, TheFrontStopsAtTheFirstThatIsNotComplete) {
  Block* first = Push({0});
  Block* second = Push({1});
  Block* third = Push({0});
  EXPECT_THAT(TakeCompleteAtFront(), IsEmpty());
  simulator->Advance(milliseconds(11));
  EXPECT_THAT(TakeCompleteAtFront(), ElementsAre(first));
  EXPECT_THAT(TakeCompleteAtFront(), IsEmpty()) << "the second is not complete";
  EXPECT_THAT(TakeComplete(), ElementsAre(third)) << "whatever comes before it";
  simulator->Advance(milliseconds(10));
  EXPECT_THAT(TakeCompleteAtFront(), ElementsAre(second));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(PendingQueueTest, ABlockWaitsForAllItsStreams) {
  Block* block = Push({0, 1});
  for (const std::shared_ptr<StreamState>& stream : streams_) ASSERT_TRUE(stream->Close(*events_, *device).ok());
  simulator->Advance(milliseconds(11));
  EXPECT_THAT(TakeComplete(), IsEmpty());
  simulator->Advance(milliseconds(10));
  EXPECT_THAT(TakeComplete(), ElementsAre(block));
}

TEST_F(PendingQueueTest, ManyBlocksOfOneStreamCostOneQuery) {
  for (int i = 0; i < 20; ++i) Push({1});
  ASSERT_TRUE(streams_[1]->Close(*events_, *device).ok());
  simulator->ResetCounters();
  EXPECT_THAT(TakeComplete(), IsEmpty());
  EXPECT_EQ(simulator->counters().TotalCalls(), 1u);
}

TEST_F(PendingQueueTest, NothingIsCompleteThatTheDriverWillNotTell) {
  Push({0});
  ASSERT_TRUE(streams_[0]->Close(*events_, *device).ok());
  simulator->Advance(milliseconds(11));
  simulator->FailNthCall(EntryPoint::event_query, 1, abi::kUnknown);
  CompletionCheck completion(*events_, *device);
  EXPECT_THAT(queue_.TakeComplete(completion), IsEmpty());
  EXPECT_TRUE(absl::IsInternal(completion.status())) << completion.status();
  Check();
  EXPECT_EQ(TakeComplete().size(), 1u);
}

}  // namespace
}  // namespace expanse

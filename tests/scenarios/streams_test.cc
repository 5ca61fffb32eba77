// Several streams share one memory.

#include <chrono>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "tests/scenarios/stage.h"

namespace expanse::scenarios {
namespace {

using std::chrono::milliseconds;

// torchtitan #735, PyTorch #147168, #129721 and #132445: a pool for each stream inflates the peak. Ten streams with
// 3 MiB each hold a handle of 20 MiB each.
TEST(Streams, ManyStreamsWithLittleEachFitTogether) {
  const auto scenario = [](std::string_view allocator) {
    Stage stage(allocator, MiB(100));
    for (int i = 0; i < 10; ++i) stage.Allocate(MiB(3), stage.NewStream());
    return stage.served_all();
  };
  EXPECT_TRUE(scenario("expanse"));
  EXPECT_FALSE(scenario("per-stream-segments"));
}

// Users of PyTorch meet cached memory on a stream that nobody uses any more, which its handles' last survivors pin.
TEST(Streams, AnAbandonedStreamDoesNotKeepItsMemory) {
  const auto scenario = [](std::string_view allocator) {
    Stage stage(allocator, MiB(100));
    const StreamHandle abandoned = stage.NewStream();
    std::vector<AddressRange> freed;
    for (int i = 0; i < 5; ++i) {
      freed.push_back(stage.Allocate(MiB(18), abandoned));
      stage.Allocate(MiB(2), abandoned);
    }
    EXPECT_TRUE(stage.served_all());
    stage.Free(freed, abandoned);
    stage.Allocate(MiB(60));
    return stage.served_all();
  };
  EXPECT_TRUE(scenario("expanse"));
  EXPECT_FALSE(scenario("per-stream-segments"));
}

// PyTorch #166116: unmapping always releases the handle, and mapping creates one anew. How often the driver is asked
// for memory, once each of two streams has had most of the device.
uint64_t CreatedForStreamsByTurns(std::string_view allocator) {
  Stage stage(allocator, MiB(100));
  const StreamHandle streams[] = {stage.NewStream(), stage.NewStream()};
  const auto created = [&stage] { return stage.Calls(EntryPoint::mem_create) + stage.Calls(EntryPoint::mem_alloc); };
  const auto round = [&] {
    for (const StreamHandle stream : streams) stage.Free(stage.Allocate(MiB(90), stream), stream);
  };
  round();
  const uint64_t before = created();
  for (int i = 0; i < 4; ++i) round();
  EXPECT_TRUE(stage.served_all());
  return created() - before;
}

TEST(Streams, MemoryThatStreamsUseByTurnsIsNotCreatedAgain) {
  EXPECT_EQ(CreatedForStreamsByTurns("expanse"), 0u);
  EXPECT_GT(CreatedForStreamsByTurns("per-stream-segments"), 0u);
  EXPECT_GT(CreatedForStreamsByTurns("caching"), 0u);
}

// PyTorch #166116 too, and #163771: a small shortage costs the whole cache, and steady state has to be mapped again.
// The calls that a stream makes to get back what it had, after another one lacked a little.
uint64_t CallsAfterASmallShortage(std::string_view allocator) {
  Stage stage(allocator, MiB(100));
  stage.Free(stage.Allocate(MiB(80)));
  stage.Allocate(MiB(22), stage.NewStream());
  const uint64_t before = stage.AllCalls();
  stage.Allocate(MiB(40));
  EXPECT_TRUE(stage.served_all());
  return stage.AllCalls() - before;
}

TEST(Streams, ASmallShortageTakesNoMoreThanIsMissing) {
  EXPECT_EQ(CallsAfterASmallShortage("expanse"), 0u);
  EXPECT_GT(CallsAfterASmallShortage("per-stream-segments"), 0u);
  EXPECT_GT(CallsAfterASmallShortage("caching"), 0u);
}

// Users of PyTorch run out of memory while a block that fits waits for an event: after waiting for all events it asks
// the driver for a segment, and does not look at what the wait made free.
TEST(Streams, ABlockThatAnotherStreamStillUsesIsWaitedFor) {
  const auto scenario = [](std::string_view allocator) {
    Stage stage(allocator, MiB(20));
    const StreamHandle one = stage.NewStream();
    const StreamHandle two = stage.NewStream();
    stage.Allocate(MiB(9), one);
    const AddressRange shared = stage.Allocate(MiB(9), one);
    EXPECT_TRUE(stage.served_all());
    stage.RecordUse(shared, two);
    stage.Work(two, shared, milliseconds(10));
    stage.Free(shared, one);
    stage.Work(one, stage.Allocate(MiB(9), one), milliseconds(1));
    return stage.served_all();
  };
  EXPECT_TRUE(scenario("expanse"));
  EXPECT_FALSE(scenario("caching"));
}

// PyTorch #113481 withdrew the advice to set max_split_size, because frees that reach the driver wait for the GPU.
sim::VirtualTime StalledByFrees(std::string_view allocator) {
  Stage stage(allocator, MiB(100));
  const StreamHandle stream = stage.NewStream();
  for (int i = 0; i < 10; ++i) {
    const AddressRange block = stage.Allocate(MiB(20), stream);
    stage.Work(stream, block, milliseconds(10));
    stage.Free(block, stream);
  }
  EXPECT_TRUE(stage.served_all());
  return stage.Stalled();
}

TEST(Streams, FreesDoNotWaitForQueuedWork) {
  EXPECT_EQ(StalledByFrees("expanse"), milliseconds(0));
  EXPECT_GE(StalledByFrees("naive"), milliseconds(50));
}

}  // namespace
}  // namespace expanse::scenarios

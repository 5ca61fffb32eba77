// Scenarios of the rungs beyond an allocator's own memory: other allocators of the process and the program's callbacks.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

class LadderTest : public AllocatorTest {
 protected:
  std::unique_ptr<Allocator> Another() {
    auto allocator = Allocator::Create(sim_->driver(), {});
    EXPECT_TRUE(allocator.ok()) << allocator.status();
    return *std::move(allocator);
  }
  // Leaves `size` bytes idle in it, which the device is done with.
  static void MakeIdle(Allocator& allocator, Bytes size) {
    const absl::StatusOr<DeviceAddress> block = allocator.Allocate(size, StreamHandle());
    ASSERT_TRUE(block.ok()) << block.status();
    ASSERT_EQ(allocator.Free(*block), absl::OkStatus());
  }
};

TEST_F(LadderTest, IdleMemoryOfAnotherAllocatorServesAsFarAsItIsMissing) {
  Start();
  const auto other = Another();
  MakeIdle(*other, MiB(40));
  Alloc(MiB(30));
  EXPECT_EQ(other->GetStats().reserved.current, MiB(34)) << "24 MiB were there, 6 were missing";
  EXPECT_EQ(other->CheckInvariants(), absl::OkStatus());
  EXPECT_EQ(stats().rungs.others_asked, 1u);
  EXPECT_EQ(stats().waits, 0u);
}

TEST_F(LadderTest, AnotherAllocatorsMemoryThatIsInUseOrMayStillBeUsedByTheDeviceIsLeftAlone) {
  Start();
  const auto other = Another();
  const StreamHandle stream = NewStream();
  const absl::StatusOr<DeviceAddress> busy = other->Allocate(MiB(20), stream);
  ASSERT_TRUE(busy.ok());
  Launch(stream, microseconds(1000), *busy, MiB(20));
  ASSERT_EQ(other->Free(*busy), absl::OkStatus());
  ASSERT_TRUE(other->Allocate(MiB(20), StreamHandle()).ok());
  EXPECT_THAT(std::string(AllocFails(MiB(30)).message()), HasSubstr("other allocators 1 times"));
  EXPECT_EQ(other->GetStats().reserved.current, MiB(40));
  sim_->Advance(microseconds(1000));
  Alloc(MiB(30));
  EXPECT_EQ(other->GetStats().reserved.current, MiB(34));
}

TEST_F(LadderTest, ALimitOfOnesOwnIsNoReasonToTakeFromOthers) {
  AllocatorOptions options;
  options.limit = MiB(8);
  Start(SmallDevice(), options);
  const auto other = Another();
  MakeIdle(*other, MiB(56));
  EXPECT_FALSE(AllocFails(MiB(10)).ok());
  EXPECT_EQ(stats().rungs.others_asked, 0u);
  EXPECT_EQ(other->GetStats().reserved.current, MiB(56));
}

TEST_F(LadderTest, WhatAnotherAllocatorReleasedCountsAfterASynchronisationWhereDriversLag) {
  sim::Config config = SmallDevice();
  config.quirks.release_lag = true;
  Start(config);
  const auto other = Another();
  MakeIdle(*other, MiB(40));
  Alloc(MiB(30));
  EXPECT_EQ(stats().waits, 1u);
}

TEST_F(LadderTest, ACallbackIsToldWhatIsMissingAndItsFreesServe) {
  Start();
  const DeviceAddress cached = Alloc(MiB(40), NewStream());
  int called = 0;
  const auto id = allocator_->AddOutOfMemoryCallback([&](const Shortage& shortage) {
    ++called;
    EXPECT_EQ(shortage.asked, MiB(30));
    EXPECT_EQ(shortage.missing, MiB(6));
    EXPECT_EQ(shortage.live, MiB(40));
    EXPECT_EQ(shortage.device_total, MiB(64));
    EXPECT_EQ(allocator_->Free(cached), absl::OkStatus());
    EXPECT_EQ(allocator_->CheckInvariants(), absl::OkStatus());
    return true;
  });
  ASSERT_TRUE(id.ok());
  Alloc(MiB(30));
  EXPECT_EQ(called, 1);
  EXPECT_EQ(stats().rungs.callbacks_asked, 1u);
  EXPECT_EQ(stats().chunks_moved, 3u);
  EXPECT_EQ(allocator_->RemoveOutOfMemoryCallback(*id), absl::OkStatus());
  EXPECT_EQ(allocator_->RemoveOutOfMemoryCallback(*id).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(AllocFails(MiB(60)).ok());
  EXPECT_EQ(called, 1) << "it was removed";
}

TEST_F(LadderTest, WhatACallbackFreedCountsEvenIfItSaysNotToTryAgain) {
  Start();
  const DeviceAddress cached = Alloc(MiB(40));
  ASSERT_TRUE(allocator_
                  ->AddOutOfMemoryCallback([&](const Shortage&) {
                    EXPECT_EQ(allocator_->Free(cached), absl::OkStatus());
                    return false;
                  })
                  .ok());
  Alloc(MiB(30));
}

TEST_F(LadderTest, ACallbackThatAlwaysAsksToTryAgainEndsInAnErrorThatSaysHowOften) {
  Start();
  Alloc(MiB(40));
  int called = 0;
  ASSERT_TRUE(allocator_
                  ->AddOutOfMemoryCallback([&](const Shortage&) {
                    ++called;
                    return true;
                  })
                  .ok());
  const absl::Status status = AllocFails(MiB(30));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("callbacks 4 times"));
  EXPECT_EQ(called, 4);
}

TEST_F(LadderTest, ACallbackMayAllocateAndFailWithoutBeingCalledAgain) {
  Start();
  Alloc(MiB(40));
  int called = 0;
  ASSERT_TRUE(allocator_
                  ->AddOutOfMemoryCallback([&](const Shortage&) {
                    ++called;
                    EXPECT_FALSE(allocator_->Allocate(MiB(50), StreamHandle()).ok());
                    return false;
                  })
                  .ok());
  EXPECT_FALSE(AllocFails(MiB(30)).ok());
  EXPECT_EQ(called, 1);
}

TEST_F(LadderTest, ACallbackMayGiveBackAnotherAllocatorsMemory) {
  Start();
  const auto other = Another();
  const absl::StatusOr<DeviceAddress> cached = other->Allocate(MiB(40), StreamHandle());
  ASSERT_TRUE(cached.ok());
  ASSERT_TRUE(allocator_
                  ->AddOutOfMemoryCallback([&](const Shortage&) {
                    EXPECT_EQ(other->Free(*cached), absl::OkStatus());
                    return true;
                  })
                  .ok());
  Alloc(MiB(60));
  EXPECT_EQ(stats().rungs.others_asked, 2u);
  EXPECT_EQ(other->GetStats().reserved.current, MiB(4));
}

TEST_F(LadderTest, AnEmptyCallbackIsRefused) {
  Start();
  EXPECT_EQ(allocator_->AddOutOfMemoryCallback(nullptr).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(LadderTest, CallbacksComeBeforeWaiting) {
  Start();
  const StreamHandle stream = NewStream();
  const DeviceAddress busy = Alloc(MiB(30), stream);
  const DeviceAddress cached = Alloc(MiB(30), stream);
  Launch(stream, microseconds(1000), busy, MiB(30));
  Free(busy);
  ASSERT_TRUE(allocator_
                  ->AddOutOfMemoryCallback([&](const Shortage& shortage) {
                    EXPECT_EQ(shortage.waits, 0);
                    EXPECT_EQ(shortage.missing, MiB(28));
                    EXPECT_EQ(allocator_->Free(cached), absl::OkStatus());
                    return false;
                  })
                  .ok());
  Alloc(MiB(32));
  EXPECT_EQ(stats().rungs.callbacks_asked, 1u);
  EXPECT_EQ(stats().waits, 1u) << "what the callback freed may still be in use too";
}

}  // namespace
}  // namespace expanse

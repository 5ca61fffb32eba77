// Scenarios of giving memory back: trims that wait and that do not, and devices that others fill.

#include <chrono>
#include <string>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

class GiveBackTest : public AllocatorTest {};

TEST_F(GiveBackTest, TrimWaitsOnlyIfAskedAndOnlyForWhatIsNeeded) {
  Start();
  const StreamHandle first = NewStream();
  const StreamHandle second = NewStream();
  const DeviceAddress a = Alloc(MiB(20), first);
  const DeviceAddress b = Alloc(MiB(20), second);
  Launch(first, microseconds(100), a, MiB(20));
  Launch(second, microseconds(1000), b, MiB(20));
  Free(a);
  Free(b);
  EXPECT_EQ(*allocator_->Trim(Bytes()), Bytes());
  EXPECT_EQ(stats().waits, 0u);
  EXPECT_EQ(*allocator_->Trim(MiB(20), TrimMode::kWait), MiB(20));
  Check();
  EXPECT_EQ(stats().waits, 1u);
  EXPECT_EQ(sim_->now(), microseconds(100)) << "the second stream was not waited for";
  EXPECT_EQ(*allocator_->Trim(Bytes(), TrimMode::kWait), MiB(20));
  Check();
  EXPECT_EQ(stats().reserved.current, Bytes());
}

TEST_F(GiveBackTest, TrimTakesTheColdestMemoryFirst) {
  Start();
  const StreamHandle stream = NewStream();
  const DeviceAddress a = Alloc(MiB(10), stream);
  const DeviceAddress b = Alloc(MiB(12), stream);
  const DeviceAddress c = Alloc(MiB(14), stream);
  Free(b);
  Free(a);
  Free(c);
  EXPECT_EQ(*allocator_->Trim(MiB(24)), MiB(12)) << "what was freed first";
  const uint64_t calls = Calls(EntryPoint::mem_create);
  EXPECT_EQ(Alloc(MiB(10), stream), a);
  EXPECT_EQ(Alloc(MiB(14), stream), c);
  EXPECT_EQ(Calls(EntryPoint::mem_create), calls) << "what was freed last is still there";
}

TEST_F(GiveBackTest, TrimThatWaitsTakesMemoryThatOtherStreamsUse) {
  Start();
  const StreamHandle own = NewStream();
  const StreamHandle other = NewStream();
  const DeviceAddress a = Alloc(MiB(20), own);
  RecordUse(a, other);
  Launch(other, microseconds(100), a, MiB(20));
  Free(a);
  EXPECT_EQ(*allocator_->Trim(Bytes()), Bytes());
  EXPECT_EQ(*allocator_->Trim(Bytes(), TrimMode::kWait), MiB(20));
  Check();
  EXPECT_EQ(stats().pending.current, Bytes());
}

TEST_F(GiveBackTest, TrimThatWaitsTakesMemoryOfADestroyedStreamThatHasNoLastEvent) {
  Start();
  const StreamHandle stream = NewStream();
  Free(Alloc(MiB(20), stream));
  sim_->FailNthCall(EntryPoint::event_record, 1, abi::kUnknown);
  EXPECT_FALSE(allocator_->OnStreamDestroyed(stream).ok());
  DestroyStream(stream);
  EXPECT_EQ(*allocator_->Trim(Bytes()), Bytes());
  EXPECT_EQ(*allocator_->Trim(Bytes(), TrimMode::kWait), MiB(20));
  Check();
}

TEST_F(GiveBackTest, TrimSaysWhatTheDriverWouldNotWaitForAndKeepsWhatItHas) {
  Start();
  const StreamHandle first = NewStream();
  const StreamHandle second = NewStream();
  const DeviceAddress a = Alloc(MiB(20), first);
  const DeviceAddress b = Alloc(MiB(20), second);
  Launch(second, microseconds(100), b, MiB(20));
  Free(a);
  Free(b);
  sim_->FailNthCall(EntryPoint::event_synchronize, 1, abi::kUnknown);
  EXPECT_EQ(allocator_->Trim(Bytes(), TrimMode::kWait).status().code(), absl::StatusCode::kInternal);
  Check();
  EXPECT_EQ(stats().reserved.current, MiB(20)) << "what nobody had to wait for is gone";
  EXPECT_EQ(*allocator_->Trim(Bytes(), TrimMode::kWait), MiB(20));
}

TEST_F(GiveBackTest, NothingIsCreatedForARequestThatANeighbourMakesHopeless) {
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = MiB(256);
  Start(config);
  Free(Alloc(MiB(20)));
  const DeviceAddress kept = Alloc(MiB(10));
  sim_->SetTakenByOthers(DeviceOrdinal(0), MiB(150));
  const Stats before = stats();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(absl::IsResourceExhausted(AllocFails(MiB(200))));
  EXPECT_EQ(stats().chunks_created, before.chunks_created);
  EXPECT_EQ(stats().chunks_moved, 0u);
  EXPECT_EQ(stats().reserved.current, before.reserved.current) << "what is cached stays";
  sim_->SetTakenByOthers(DeviceOrdinal(0), Bytes());
  Alloc(MiB(200));
  Free(kept);
}

TEST_F(GiveBackTest, AfterARefusalSmallHopelessRequestsCreateNothingEither) {
  Start();
  Alloc(MiB(2));
  sim_->SetTakenByOthers(DeviceOrdinal(0), MiB(40));
  EXPECT_FALSE(AllocFails(MiB(30)).ok());  // the device is not asked for so little before it has refused
  const uint64_t created = stats().chunks_created;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(AllocFails(MiB(30)).ok());
  EXPECT_EQ(stats().chunks_created, created);
  Alloc(MiB(22));  // all that the neighbour leaves
}

TEST_F(GiveBackTest, MemoryThatTheDriverCountsTooLowIsHadAllTheSame) {
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = MiB(256);
  config.quirks.release_lag = true;
  Start(config);
  Free(Alloc(MiB(200)));
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(200));
  Alloc(MiB(220));
}

class TrimAfterTest : public AllocatorTest {
 protected:
  // With trim_after 8 seconds on a clock that the test moves.
  void StartAging() {
    AllocatorOptions options;
    options.trim_after = seconds(8);
    options.clock = [this] { return now_; };
    Start(SmallDevice(), options);
  }
  // A request that needs little and frees it at once: the allocator looks at the clock.
  void Touch() { Free(Alloc(KiB(4))); }
  Bytes reserved() const { return stats().reserved.current; }

  std::chrono::nanoseconds now_{0};
};

TEST_F(TrimAfterTest, WhatNothingNeededForThatLongIsGivenBackByLaterCallsAndNotEarlier) {
  StartAging();
  Touch();
  const DeviceAddress a = Alloc(MiB(20));
  const DeviceAddress b = Alloc(MiB(30));
  Free(a);
  for (now_ = seconds(1); now_ < seconds(8); now_ += seconds(1)) {
    Touch();
    EXPECT_EQ(reserved(), MiB(52)) << now_.count();
  }
  Free(b);
  now_ = seconds(10);
  Touch();
  EXPECT_EQ(reserved(), MiB(32)) << "the first is old, the second is not, and what is used is not";
  now_ = seconds(18);
  Touch();
  EXPECT_EQ(reserved(), MiB(2));
}

TEST_F(TrimAfterTest, MemoryThatIsNeededAgainAndAgainStays) {
  StartAging();
  for (int step = 0; step < 50; ++step) {
    Free(Alloc(MiB(40)));
    now_ += seconds(5);
  }
  EXPECT_EQ(reserved(), MiB(40));
  EXPECT_EQ(stats().chunks_created, 20u);
}

TEST_F(TrimAfterTest, AProgramThatMakesNoCallsAsksForIt) {
  StartAging();
  Free(Alloc(MiB(20)));
  now_ = seconds(7);
  EXPECT_EQ(*allocator_->TrimUnused(), Bytes());
  now_ = seconds(8);
  EXPECT_EQ(*allocator_->TrimUnused(), MiB(20));
  Check();
}

TEST_F(TrimAfterTest, MemoryThatIsMappedNowhereGrowsOldToo) {
  StartAging();
  // Chunks that a request got and could not map are spare, and stay for the next one.
  sim_->FailNthCall(EntryPoint::mem_map, 1, abi::kUnknown);
  EXPECT_FALSE(AllocFails(MiB(20)).ok());
  Touch();
  Free(Alloc(MiB(20)));
  const StreamHandle other = NewStream();
  Free(Alloc(MiB(6), other));
  now_ = seconds(9);
  Touch();
  now_ = seconds(18);
  Touch();
  EXPECT_EQ(reserved(), MiB(2));
  EXPECT_EQ(stats().idle.current, MiB(2));
}

TEST_F(TrimAfterTest, ItNeverWaitsAndTakesTheMemoryOnceTheWorkIsDone) {
  StartAging();
  const StreamHandle stream = NewStream();
  const DeviceAddress a = Alloc(MiB(20), stream);
  Launch(stream, microseconds(100), a, MiB(20));
  Free(a);
  Touch();
  now_ = seconds(20);
  EXPECT_EQ(*allocator_->TrimUnused(), MiB(2)) << "the other stream's";
  EXPECT_EQ(stats().waits, 0u);
  sim_->Advance(microseconds(200));
  EXPECT_EQ(*allocator_->TrimUnused(), MiB(20));
  Check();
}

TEST_F(TrimAfterTest, WhatTheDriverRefusesIsTakenByTheNextLook) {
  StartAging();
  Free(Alloc(MiB(20)));
  now_ = seconds(8);
  sim_->FailNthCall(EntryPoint::mem_unmap, 1, abi::kUnknown);
  EXPECT_EQ(allocator_->TrimUnused().status().code(), absl::StatusCode::kInternal);
  Check();
  EXPECT_EQ(reserved(), MiB(20));
  EXPECT_EQ(*allocator_->TrimUnused(), MiB(20));
}

TEST_F(TrimAfterTest, OffByDefaultAndRefusedWhereItMakesNoSense) {
  Start();
  Free(Alloc(MiB(20)));
  EXPECT_EQ(allocator_->TrimUnused().status().code(), absl::StatusCode::kFailedPrecondition);
  AllocatorOptions options;
  options.trim_after = seconds(0);
  const absl::Status status = Allocator::Create(sim_->driver(), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("trim_after is 0 ns"));
}

}  // namespace
}  // namespace expanse

// Every driver call fails in turn while chunks of several sizes are created, moved without need, broken up and trimmed.

#include "absl/strings/str_cat.h"
#include "core/allocator_fixture.h"

namespace expanse {
namespace {

class MixedSizesFaults : public AllocatorTest {
 protected:
  static constexpr Bytes kRoom = GiB(24);  // so that chunks have 8 MiB while little is held

  void StartAnew() {
    sim::Config config = SmallDevice();
    config.devices[0].total_memory = TiB(1);
    AllocatorOptions options;
    options.limit = kRoom;
    Start(config, options);
    for (int i = 0; i < 3; ++i) NewStream();
  }

  // What a call of the program may end with while one driver call fails.
  void Expect(const absl::Status& status, abi::Result error) {
    Check();
    if (error == abi::kSuccess) {
      EXPECT_EQ(status, absl::OkStatus());
    } else {
      EXPECT_TRUE(status.ok() || !status.message().empty()) << status;
    }
  }
  void AllocateAndFree(Bytes size, StreamHandle stream, abi::Result error) {
    const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(size, stream);
    Expect(block.status(), error);
    if (block.ok()) Expect(allocator_->Free(*block, stream), error);
  }

  void Run(abi::Result error) {
    AllocateAndFree(MiB(256), streams_[0], error);
    AllocateAndFree(MiB(256), streams_[1], error);  // moves what the budget affords, creates the rest
    // A neighbour has the rest of the device.
    sim_->SetTakenByOthers(DeviceOrdinal(0), TiB(1) - stats().reserved.current);
    AllocateAndFree(MiB(70), streams_[2], error);   // refused, moved, and a chunk broken up for the last 6 MiB
    AllocateAndFree(MiB(200), streams_[2], error);  // the driver is asked first what is free
    Expect(allocator_->Trim(MiB(100)).status(), error);
    sim_->SetTakenByOthers(DeviceOrdinal(0), Bytes());
  }

  void FinishAndStop() {
    TearDown();
    streams_.clear();
    sim_.reset();
  }
};

TEST_F(MixedSizesFaults, WithoutAnyTheProgramTakesEveryPath) {
  StartAnew();
  Run(abi::kSuccess);
  EXPECT_GT(stats().unforced_moves.spent.count(), 0);
  EXPECT_GT(stats().chunks_moved, 8u + 20u);
  EXPECT_GT(stats().chunks_released, 0u);
  EXPECT_GT(stats().rungs.created, 0u);
  EXPECT_GT(allocator_->GetDriverCalls().calls[static_cast<size_t>(EntryPoint::mem_get_info)], 0u);
}

TEST_F(MixedSizesFaults, EveryCallInTurn) {
  StartAnew();
  const uint64_t before = sim_->FailableCalls();
  Run(abi::kSuccess);
  const uint64_t calls = sim_->FailableCalls() - before;
  FinishAndStop();
  ASSERT_GT(calls, 100u);
  for (const abi::Result error : {abi::kOutOfMemory, abi::kInvalidValue, abi::kUnknown}) {
    // Every call runs out of memory once; the other errors are met by every third, each time by others.
    const bool every = error == abi::kOutOfMemory;
    for (uint64_t nth = error == abi::kUnknown ? 2 : 1; nth <= calls; nth += every ? 1 : 3) {
      SCOPED_TRACE(absl::StrCat("call ", nth, " fails with ", static_cast<int>(error)));
      StartAnew();
      sim_->FailNthCallOfAny(nth, error);
      Run(error);
      sim_->ClearFaults();
      Alloc(MiB(64), streams_[0]);
      EXPECT_LE(stats().chunks_quarantined, 1u);
      FinishAndStop();
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace expanse

// That the hazard checker has eyes: three things that would corrupt memory, each seen with it and not without it.

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "core/allocator.h"
#include "gtest/gtest.h"
#include "tests/stress/lying_driver.h"
#include "tests/stress/stress_device.h"
#include "vmm/sim/simulator.h"

namespace expanse::stress {
namespace {

using std::chrono::microseconds;
using Kind = sim::Hazard::Kind;

constexpr Bytes kMemory = MiB(64);

class HazardsTest : public testing::Test {
 protected:
  void Start(Lie lie) {
    absl::StatusOr<std::unique_ptr<StressDevice>> device =
        StressDevice::Open(kMemory, MiB(2), sim::MemoryMode::kAccounting);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    absl::StatusOr<std::unique_ptr<Allocator>> allocator =
        Allocator::Create(LyingDriver(device_->driver(), lie), AllocatorOptions());
    ASSERT_TRUE(allocator.ok()) << allocator.status();
    allocator_ = *std::move(allocator);
    one_ = NewStream();
    two_ = NewStream();
  }
  // The hazards are what was tested; everything else must be as it should.
  void End() {
    sim().Advance(std::chrono::seconds(1));
    sim().ResetStickyError();
    sim().ClearHazards();
    allocator_.reset();
    EXPECT_EQ(device_->Close(), absl::OkStatus());
    device_.reset();
  }

  sim::Simulator& sim() { return device_->simulator(); }
  StreamHandle NewStream() {
    const absl::StatusOr<StreamHandle> stream = device_->CreateStream();
    EXPECT_TRUE(stream.ok()) << stream.status();
    return stream.value_or(StreamHandle());
  }
  AddressRange Allocate(Bytes size, StreamHandle stream) {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream);
    return address.ok() ? AddressRange{*address, size} : AddressRange();
  }
  void Work(StreamHandle stream, AddressRange block) {
    (void)sim().Launch(stream, microseconds(1000), {sim::Access{block, /*writes=*/true}});
  }
  // Memory is short, and what could be moved was freed while work on it is queued. Returns what was freed.
  AddressRange MoveMemoryOfAStreamThatIsBusy() {
    const AddressRange freed = Allocate(kMemory, one_);
    Work(one_, freed);
    EXPECT_EQ(allocator_->Free(freed.begin), absl::OkStatus());
    Work(two_, Allocate(kMemory / 2, two_));
    return freed;
  }
  // A block of one stream is used on another one, freed, and handed out again. Returns the block.
  AddressRange ReuseABlockThatAnotherStreamUses(bool tell) {
    const AddressRange shared = Allocate(MiB(2), one_);
    EXPECT_EQ(device_->Order(one_, two_), absl::OkStatus());
    Work(two_, shared);
    if (tell) {
      EXPECT_EQ(allocator_->RecordUse(shared.begin, two_), absl::OkStatus());
    }
    EXPECT_EQ(allocator_->Free(shared.begin), absl::OkStatus());
    Work(one_, Allocate(MiB(2), one_));
    return shared;
  }

  std::unique_ptr<StressDevice> device_;
  std::unique_ptr<Allocator> allocator_;
  StreamHandle one_;
  StreamHandle two_;
};

// The first range of addresses in a description.
AddressRange RangeNamed(const std::string& description) {
  uint64_t begin = 0;
  uint64_t end = 0;
  const size_t open = description.find("[0x");
  const size_t comma = description.find(", 0x", open);
  const size_t close = description.find(')', open);
  if (open >= comma || comma >= close || close == std::string::npos) {
    ADD_FAILURE() << "no range in: " << description;
    return {};
  }
  EXPECT_TRUE(absl::SimpleHexAtoi(description.substr(open + 1, comma - open - 1), &begin)) << description;
  EXPECT_TRUE(absl::SimpleHexAtoi(description.substr(comma + 2, close - comma - 2), &end)) << description;
  return {DeviceAddress(begin), Bytes(end - begin)};
}

void ExpectUnmappedUnderWork(const sim::Simulator& sim, AddressRange used) {
  ASSERT_GT(sim.hazard_count(), 0u);
  const sim::Hazard hazard = sim.hazards().front();
  EXPECT_EQ(hazard.kind, Kind::kUnmapUnderWork) << hazard.description;
  const AddressRange named = RangeNamed(hazard.description);
  EXPECT_TRUE(used.Contains(named) && !named.size.is_zero()) << hazard.description << ", freed " << ToString(used);
}

TEST_F(HazardsTest, MovingMemoryWithoutADefectIsNone) {
  Start(Lie::kNone);
  MoveMemoryOfAStreamThatIsBusy();
  EXPECT_EQ(sim().hazard_count(), 0u);
  EXPECT_EQ(allocator_->GetStats().chunks_moved, 16u);
  End();
}

TEST_F(HazardsTest, ABrokenEpochIsCaught) {
  Start(Lie::kEventsAreComplete);
  ExpectUnmappedUnderWork(sim(), MoveMemoryOfAStreamThatIsBusy());
  End();
}

TEST_F(HazardsTest, AnEarlyUnmapIsCaught) {
  Start(Lie::kWaitsReturnAtOnce);
  ExpectUnmappedUnderWork(sim(), MoveMemoryOfAStreamThatIsBusy());
  End();
}

TEST_F(HazardsTest, ARecordedUseIsNone) {
  Start(Lie::kNone);
  ReuseABlockThatAnotherStreamUses(/*tell=*/true);
  EXPECT_EQ(sim().hazard_count(), 0u);
  End();
}

TEST_F(HazardsTest, ADroppedRecordUseIsCaught) {
  Start(Lie::kNone);
  const AddressRange shared = ReuseABlockThatAnotherStreamUses(/*tell=*/false);
  ASSERT_EQ(sim().hazard_count(), 1u);
  const sim::Hazard hazard = sim().hazards().front();
  EXPECT_EQ(hazard.kind, Kind::kRace);
  EXPECT_EQ(RangeNamed(hazard.description), shared);
  End();
}

// A block that another stream uses is moved to a third stream.
TEST_F(HazardsTest, ADroppedRecordUseIsCaughtWhenMemoryMovesToo) {
  for (const bool tell : {true, false}) {
    Start(Lie::kNone);
    const AddressRange shared = Allocate(kMemory, one_);
    Work(two_, shared);
    if (tell) {
      ASSERT_EQ(allocator_->RecordUse(shared.begin, two_), absl::OkStatus());
    }
    ASSERT_EQ(allocator_->Free(shared.begin), absl::OkStatus());
    Allocate(MiB(8), NewStream());
    if (tell) {
      EXPECT_EQ(sim().hazard_count(), 0u);
    } else {
      ExpectUnmappedUnderWork(sim(), shared);
    }
    End();
  }
}

// The stream is gone without a word, and another one has its handle. A driver that knows ids tells; an older one makes
// the call of OnStreamDestroyed as necessary as its documentation says.
TEST_F(HazardsTest, AForgottenOnStreamDestroyedIsCaughtWhereTheDriverKnowsNoIds) {
  for (const Lie lie : {Lie::kNone, Lie::kStreamsHaveNoId}) {
    Start(lie);
    const StreamHandle stream = NewStream();
    const AddressRange freed = Allocate(kMemory, stream);
    Work(stream, freed);
    ASSERT_EQ(allocator_->Free(freed.begin), absl::OkStatus());
    ASSERT_EQ(device_->DestroyStream(stream), absl::OkStatus());
    ASSERT_EQ(NewStream(), stream);
    Allocate(MiB(8), two_);
    if (lie == Lie::kNone) {
      EXPECT_EQ(sim().hazard_count(), 0u);
    } else {
      ExpectUnmappedUnderWork(sim(), freed);
    }
    End();
  }
}

}  // namespace
}  // namespace expanse::stress

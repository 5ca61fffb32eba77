// Queued work and the memory that it uses. The simulator knows which bytes work touches: whatever disturbs it is a
// hazard, and the fixture expects none.

#include <chrono>
#include <vector>

#include "tests/conformance/conformance_test.h"

namespace expanse {
namespace {

using std::chrono::milliseconds;

class StreamsConformance : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (simulator() == nullptr) GTEST_SKIP() << "work that can be watched needs the simulated driver";
    Create();
  }
};

TEST_P(StreamsConformance, WorkOfTheSameStreamFollowsTheFreedBlocks) {
  const StreamHandle stream = device_->NewStream();
  for (int i = 0; i < 20; ++i) {
    const AddressRange block = Allocate(MiB(3), stream);
    Work(stream, block, milliseconds(5));
    Free(block, stream);
  }
}

TEST_P(StreamsConformance, ARecordedUseKeepsTheMemoryFromOthers) {
  const StreamHandle other = device_->NewStream();
  for (int i = 0; i < 20; ++i) {
    const AddressRange block = Allocate(MiB(3));
    device_->Order(StreamHandle(), other);
    Work(other, block, milliseconds(40));
    RecordUse(block, other);
    Free(block);
    const AddressRange next = Allocate(MiB(3));
    Work(StreamHandle(), next, milliseconds(1));
    Free(next);
    simulator()->Advance(milliseconds(5));
  }
}

TEST_P(StreamsConformance, AFreeOnAnotherStreamKeepsTheMemoryFromTheFirst) {
  const StreamHandle other = device_->NewStream();
  for (int i = 0; i < 20; ++i) {
    const AddressRange block = Allocate(MiB(3));
    device_->Order(StreamHandle(), other);
    Work(other, block, milliseconds(40));
    Free(block, other);
    const AddressRange next = Allocate(MiB(3));
    Work(StreamHandle(), next, milliseconds(1));
    Free(next);
    simulator()->Advance(milliseconds(5));
  }
}

TEST_P(StreamsConformance, UsesOnManyStreamsAreAllWaitedFor) {
  std::vector<StreamHandle> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(device_->NewStream());
  for (int round = 0; round < 5; ++round) {
    const AddressRange block = Allocate(MiB(3));
    for (size_t i = 0; i < streams.size(); ++i) {
      // Parts of their own, so that only reuse could make them collide.
      device_->Order(StreamHandle(), streams[i]);
      Work(streams[i], {block.begin + KiB(512) * i, KiB(512)}, milliseconds(10 * (i + 1)));
      RecordUse(block, streams[i]);
      RecordUse(block, streams[i]);
    }
    Free(block);
    for (StreamHandle stream : streams) {
      const AddressRange next = Allocate(MiB(3), stream);
      Work(stream, next, milliseconds(1));
      Free(next, stream);
    }
  }
}

// Memory is short, and what could be given back is still in use by queued work.
TEST_P(StreamsConformance, MemoryIsTakenFromAStreamOnlyOnceItsWorkIsDone) {
  const StreamHandle first = device_->NewStream();
  const StreamHandle second = device_->NewStream();
  std::vector<AddressRange> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(Allocate(MiB(20), first));
    Work(first, blocks.back(), milliseconds(30));
  }
  for (AddressRange block : blocks) Free(block, first);
  auto taken = allocator_->Allocate(MiB(160), second);
  if (device_name() == "late" && !taken.ok()) {
    // What was given back is there only now.
    device_->Synchronize();
    taken = allocator_->Allocate(MiB(160), second);
  }
  ASSERT_TRUE(taken.ok()) << taken.status();
  const AddressRange block{*taken, MiB(160)};
  live_[taken->value()] = block;
  Work(second, block, milliseconds(1));
  Free(block, second);
}

TEST_P(StreamsConformance, AStreamMayGoOnceItIsIdleAndItsHandleMayComeBack) {
  for (int i = 0; i < 5; ++i) {
    const StreamHandle stream = device_->NewStream();
    const AddressRange block = Allocate(MiB(3), stream);
    const AddressRange kept = Allocate(MiB(1));
    Work(stream, block, milliseconds(10));
    Work(stream, kept, milliseconds(10));
    RecordUse(kept, stream);
    Free(kept);
    Free(block, stream);
    device_->Synchronize();
    device_->DestroyStream(stream);
  }
  Free(Allocate(MiB(3)));
}

TEST_P(StreamsConformance, DestructionWaitsForQueuedWork) {
  const StreamHandle stream = device_->NewStream();
  const AddressRange freed = Allocate(MiB(30), stream);
  const AddressRange shared = Allocate(MiB(5));
  const AddressRange kept = Allocate(MiB(3));
  Work(stream, freed, milliseconds(50));
  Work(stream, shared, milliseconds(50));
  Work(StreamHandle(), kept, milliseconds(200));
  RecordUse(shared, stream);
  Free(shared);
  Free(freed, stream);
  allocator_.reset();
  EXPECT_EQ(simulator()->ledger().physical_bytes, Bytes());
}

EXPANSE_INSTANTIATE_CONFORMANCE(StreamsConformance);

}  // namespace
}  // namespace expanse

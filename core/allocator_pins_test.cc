// Memory that something outside of the allocator refers to: pins, and the handles behind addresses.

#include <algorithm>
#include <string>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;

class AllocatorPins : public AllocatorTest {
 protected:
  void Pin(DeviceAddress address, Bytes length) {
    EXPECT_EQ(allocator_->Pin(address, length), absl::OkStatus());
    Check();
  }
  void Unpin(DeviceAddress address, Bytes length) {
    EXPECT_EQ(allocator_->Unpin(address, length), absl::OkStatus());
    Check();
  }
};

TEST_F(AllocatorPins, APinnedChunkIsNeitherTrimmedNorMovedEvenWhenItsBlockWasFreed) {
  Start();
  const DeviceAddress block = Alloc(MiB(8));
  Pin(block + MiB(3), MiB(2));  // the second and third chunk
  EXPECT_EQ(stats().pinned.current, MiB(4));
  Free(block);
  EXPECT_EQ(stats().idle.current, MiB(4));
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(4));
  Check();
  EXPECT_TRUE(sim_->IsMapped({block + MiB(2), MiB(4)}));
  EXPECT_FALSE(sim_->IsMapped({block, MiB(2)}));
  const StreamHandle other = NewStream();
  Alloc(MiB(60), other);
  EXPECT_TRUE(absl::IsResourceExhausted(AllocFails(MiB(2), other)));
  EXPECT_TRUE(sim_->IsMapped({block + MiB(2), MiB(4)}));
  Unpin(block + MiB(3), MiB(2));
  EXPECT_EQ(stats().pinned.current, Bytes());
  EXPECT_EQ(stats().idle.current, MiB(4));
  Alloc(MiB(4), other);
  EXPECT_EQ(stats().chunks_moved, 2u);
  EXPECT_FALSE(sim_->IsMapped({block + MiB(2), MiB(2)}));
}

TEST_F(AllocatorPins, FreePinnedMemoryServesItsOwnStreamAndPool) {
  Start();
  const DeviceAddress block = Alloc(MiB(8));
  Pin(block, MiB(8));
  Free(block);
  EXPECT_EQ(stats().idle.current, Bytes());
  EXPECT_EQ(stats().pinned.current, MiB(8));
  const StreamHandle other = NewStream();
  const DeviceAddress elsewhere = Alloc(MiB(8), other);
  EXPECT_NE(elsewhere, block);
  EXPECT_EQ(Alloc(MiB(8)), block) << "the registration is still good for it";
  Unpin(block, MiB(8));
  Free(block);
  EXPECT_EQ(stats().idle.current, MiB(8));
}

TEST_F(AllocatorPins, OverlappingPinsAreCounted) {
  Start();
  const DeviceAddress block = Alloc(MiB(6));
  Pin(block, MiB(4));
  Pin(block + MiB(2), MiB(4));
  Pin(block, MiB(4));
  EXPECT_EQ(stats().pinned.current, MiB(6));
  Unpin(block, MiB(4));
  EXPECT_EQ(stats().pinned.current, MiB(6));
  Unpin(block, MiB(4));
  EXPECT_EQ(stats().pinned.current, MiB(4));
  Free(block);
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(2));
  Unpin(block + MiB(2), MiB(4));
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(4));
  Check();
  EXPECT_EQ(stats().pinned.peak, MiB(6));
}

TEST_F(AllocatorPins, UnpinningTwiceIsAnErrorThatNamesTheAddress) {
  Start();
  const DeviceAddress block = Alloc(MiB(2));
  Pin(block, KiB(4));
  EXPECT_TRUE(absl::IsNotFound(allocator_->Unpin(block, KiB(8))));
  Unpin(block, KiB(4));
  const absl::Status again = allocator_->Unpin(block, KiB(4));
  EXPECT_TRUE(absl::IsNotFound(again));
  EXPECT_THAT(std::string(again.message()), HasSubstr(ToString(block)));
  Check();
}

TEST_F(AllocatorPins, OnlyRangesInsideOneLiveBlockArePinned) {
  Start();
  const DeviceAddress a = Alloc(MiB(3));
  const DeviceAddress b = Alloc(MiB(3));
  ASSERT_EQ(b, a + MiB(3));
  const absl::Status refused[] = {
      allocator_->Pin(a, Bytes()),
      allocator_->Pin(a, MiB(3) + Bytes(1)),
      allocator_->Pin(a + MiB(2), Bytes(UINT64_MAX)),
      allocator_->Pin(b + MiB(3), Bytes(1)),
      allocator_->Pin(DeviceAddress(), Bytes(1)),
      allocator_->Pin(DeviceAddress(4096), Bytes(1)),
  };
  for (const absl::Status& status : refused) EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(refused[1].message()), HasSubstr("do not lie in one live block"));
  Free(b);
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_->Pin(b, Bytes(1))));
  EXPECT_EQ(stats().pinned.current, Bytes());
  Pin(a + MiB(3) - Bytes(1), Bytes(1));
  EXPECT_EQ(stats().pinned.current, kChunk);
}

TEST_F(AllocatorPins, ARetiredPoolKeepsWhatIsPinned) {
  Start();
  const PoolId pool = *allocator_->CreatePool(PoolOptions());
  const DeviceAddress block = *allocator_->Allocate(MiB(8), StreamHandle(), pool);
  Pin(block, MiB(2));
  EXPECT_EQ(allocator_->GetPoolStats(pool)->pinned.current, MiB(2));
  ASSERT_EQ(allocator_->RetirePool(pool), absl::OkStatus());
  Free(block);
  EXPECT_TRUE(sim_->IsMapped({block, MiB(2)}));
  EXPECT_FALSE(sim_->IsMapped({block + MiB(2), MiB(2)}));
  Unpin(block, MiB(2));
  EXPECT_FALSE(sim_->IsMapped({block, MiB(2)}));
  EXPECT_EQ(stats().idle.current, MiB(8));
}

TEST_F(AllocatorPins, TheErrorAtOutOfMemorySaysWhatIsPinned) {
  Start();
  const DeviceAddress block = Alloc(MiB(32));
  Pin(block, MiB(32));
  Free(block);
  EXPECT_THAT(std::string(AllocFails(MiB(40), NewStream()).message()), HasSubstr("pinned 32.00 MiB"));
}

TEST_F(AllocatorPins, HandlesSpanARangeExactly) {
  Start();
  Alloc(KiB(1500));
  const DeviceAddress block = Alloc(MiB(7));
  const AddressRange ranges[] = {
      {block, MiB(7)}, {block + Bytes(1), Bytes(1)}, {block + KiB(100), MiB(4)}, {block + MiB(7) - Bytes(3), Bytes(3)}};
  for (const AddressRange& range : ranges) {
    const auto spans = allocator_->HandlesSpanning(range.begin, range.size);
    ASSERT_TRUE(spans.ok()) << spans.status();
    DeviceAddress at = range.begin;
    for (const HandleSpan& span : *spans) {
      EXPECT_EQ(span.range().begin, at);
      EXPECT_TRUE(span.chunk.Contains(span.range()));
      EXPECT_FALSE(span.length.is_zero());
      EXPECT_TRUE(IsMultipleOf(span.chunk.size, kChunk));
      abi::MemHandle retained = 0;
      ASSERT_EQ(sim_->driver().mem_retain_allocation_handle(&retained, at.ptr()), abi::kSuccess);
      EXPECT_EQ(span.handle, retained);
      EXPECT_EQ(sim_->driver().mem_release(retained), abi::kSuccess);
      at = span.range().end();
    }
    EXPECT_EQ(at, range.end());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_->HandlesSpanning(block, MiB(8)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_->HandlesSpanning(block, Bytes()).status()));
  Free(block);
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_->HandlesSpanning(block, MiB(1)).status()));
}

TEST_F(AllocatorPins, ALargeChunkIsPinnedAsAWhole) {
  sim::Config config = SmallDevice();
  config.devices[0].total_memory = TiB(1);
  Start(config);
  Alloc(GiB(8));
  const DeviceAddress block = Alloc(GiB(4));
  const absl::StatusOr<std::vector<HandleSpan>> spans = allocator_->HandlesSpanning(block, GiB(4));
  ASSERT_TRUE(spans.ok()) << spans.status();
  const auto large =
      std::find_if(spans->begin(), spans->end(), [](const HandleSpan& span) { return span.chunk.size > MiB(8); });
  ASSERT_NE(large, spans->end()) << "a device of that size has larger chunks";
  Pin(large->chunk.begin + MiB(1), Bytes(1));
  EXPECT_EQ(stats().pinned.current, large->chunk.size);
  Free(block);
  ASSERT_TRUE(allocator_->Trim(Bytes()).ok());
  Check();
  EXPECT_TRUE(sim_->IsMapped(large->chunk));
  EXPECT_FALSE(sim_->IsMapped({large->chunk.end(), kChunk}));
  Unpin(large->chunk.begin + MiB(1), Bytes(1));
  ASSERT_TRUE(allocator_->Trim(Bytes()).ok());
  EXPECT_FALSE(sim_->IsMapped({large->chunk.begin, kChunk}));
}

}  // namespace
}  // namespace expanse

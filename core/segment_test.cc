#include "core/segment.h"

#include "core/segment_fixture.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

TEST_F(SegmentTest, BeginsAsOneHole) {
  Check();
  EXPECT_EQ(Picture(), "hole 20480");
  EXPECT_TRUE(segment_->IsEmpty());
}

TEST_F(SegmentTest, FilledSlotsAreFreeUntilTaken) {
  Block* block = FillAndTake(0, 2, KiB(0), KiB(3000));
  EXPECT_EQ(Picture(), "used 3000, free 1096, hole 16384");
  EXPECT_EQ(block->begin, DeviceAddress(kBegin));
  EXPECT_EQ(index_.bytes(), KiB(1096));
  EXPECT_EQ(segment_->MappedSlots(), 2u);
  EXPECT_EQ(queue_.idle_slots(), 0u);
}

TEST_F(SegmentTest, ABlockMayBeTakenInTheMiddleOrAtTheEnd) {
  FillAndTake(0, 2, KiB(1024), KiB(2048));
  EXPECT_EQ(Picture(), "free 1024, used 2048, free 1024, hole 16384");
  Take(index_.BestFit(KiB(1)), KiB(512), KiB(512));
  EXPECT_EQ(Picture(), "free 512, used 512, used 2048, free 1024, hole 16384");
}

TEST_F(SegmentTest, FreedNeighboursCoalesce) {
  FillAndFree(0, 2);
  Block* a = Take(index_.BestFit(KiB(4096)), KiB(0), KiB(1024));
  Block* b = Take(index_.BestFit(KiB(1024)), KiB(1024), KiB(1024));
  Block* c = Take(index_.BestFit(KiB(1024)), KiB(2048), KiB(1024));
  EXPECT_EQ(Picture(), "used 1024, used 1024, used 1024, free 1024, hole 16384");
  Release(a);
  EXPECT_EQ(Picture(), "free 1024, used 1024, used 1024, free 1024, hole 16384");
  Release(c);
  EXPECT_EQ(Picture(), "free 1024, used 1024, free 2048, hole 16384");
  Release(b);
  EXPECT_EQ(Picture(), "free 4096, hole 16384");
  EXPECT_EQ(index_.count(), 1u);
}

TEST_F(SegmentTest, PendingBlocksKeepNeighboursApart) {
  FillAndFree(0, 2);
  Block* a = Take(index_.BestFit(KiB(4096)), KiB(0), KiB(1024));
  Block* b = Take(index_.BestFit(KiB(1024)), KiB(1024), KiB(1024));
  segment_->SetPending(b);
  Check();
  Release(a);
  EXPECT_EQ(Picture(), "free 1024, pending 1024, free 2048, hole 16384");
  Release(b);
  EXPECT_EQ(Picture(), "free 4096, hole 16384");
}

TEST_F(SegmentTest, ASlotIsIdleOnceItLiesInOneFreeBlock) {
  // Slot 0 is shared by both blocks, slot 1 by the second and the rest.
  FillAndFree(0, 2);
  Block* a = Take(index_.BestFit(KiB(4096)), KiB(0), KiB(1024));
  Block* b = Take(index_.BestFit(KiB(3072)), KiB(1024), KiB(2048));
  EXPECT_EQ(queue_.idle_slots(), 0u);
  Release(b);
  EXPECT_EQ(segment_->stamp(0), 0u) << "the first block still lies in it";
  EXPECT_EQ(segment_->stamp(1), 2u);
  Release(a);
  EXPECT_EQ(segment_->stamp(0), 3u);
  EXPECT_EQ(segment_->stamp(1), 2u) << "it fell idle earlier";
}

TEST_F(SegmentTest, TakingPartOfAnIdleSlotEndsItsIdleness) {
  Block* a = FillAndTake(0, 3, KiB(0), KiB(6144));
  Release(a);
  EXPECT_EQ(queue_.idle_slots(), 3u);
  Take(index_.BestFit(KiB(1)), KiB(0), KiB(2560));
  EXPECT_EQ(queue_.idle_slots(), 1u);
  EXPECT_EQ(segment_->stamp(2), 1u);
}

TEST_F(SegmentTest, EvictedSlotsBecomeHolesAndMerge) {
  Block* a = FillAndTake(0, 5, KiB(0), KiB(10240));
  Release(a);
  Evict(1, 1);
  EXPECT_EQ(Picture(), "free 2048, hole 2048, free 6144, hole 10240");
  Evict(4, 1);
  EXPECT_EQ(Picture(), "free 2048, hole 2048, free 4096, hole 12288");
  Evict(2, 2);
  EXPECT_EQ(Picture(), "free 2048, hole 18432");
  Evict(0, 1);
  EXPECT_TRUE(segment_->IsEmpty());
  EXPECT_EQ(queue_.idle_slots(), 0u);
  EXPECT_EQ(index_.count(), 0u);
}

TEST_F(SegmentTest, EvictionLeavesTheUsedEdgesOfAFreeBlockMapped) {
  FillAndFree(0, 3);
  Block* a = Take(index_.BestFit(KiB(6144)), KiB(0), KiB(512));
  Block* b = Take(index_.BestFit(KiB(1)), KiB(512), KiB(5120));
  Release(b);
  // The free block begins inside slot 0; slots 1 and 2 are idle.
  Evict(1, 2);
  EXPECT_EQ(Picture(), "used 512, free 1536, hole 18432");
  Release(a);
  EXPECT_EQ(Picture(), "free 2048, hole 18432");
}

TEST_F(SegmentTest, AChunkOfSeveralSlotsIsIdleOnlyAsAWhole) {
  // One chunk of 4 slots, one of 2; a block begins in the last slot of the first and ends in the second.
  Release(FillChunksAndTake(0, {4, 2}, KiB(0), KiB(12288)));
  EXPECT_EQ(queue_.idle_slots(), 6u);
  Block* across = Take(index_.BestFit(KiB(1)), KiB(7168), KiB(2048));
  EXPECT_EQ(queue_.idle_slots(), 0u) << "slots 0 to 2 are wholly free, but not their chunk";
  Block* low = Take(index_.BestFit(KiB(7168)), KiB(0), KiB(512));
  Release(across);
  EXPECT_EQ(queue_.idle_slots(), 2u) << "the second chunk";
  Release(low);
  EXPECT_EQ(queue_.idle_slots(), 6u);
  Evict(0, 4);
  EXPECT_EQ(Picture(), "hole 8192, free 4096, hole 8192");
  EXPECT_EQ(segment_->ChunkAt(5).first, 4u);
  EXPECT_EQ(segment_->ChunkAt(5).count, 2u);
}

TEST_F(SegmentTest, AHoleBetweenFreeBlocksIsFilledAndMergesThem) {
  Block* a = FillAndTake(0, 3, KiB(0), KiB(6144));
  Release(a);
  Evict(1, 1);
  FillAndTake(1, 1, KiB(1024), KiB(4096));
  EXPECT_EQ(Picture(), "free 1024, used 4096, free 1024, hole 14336");
}

TEST_F(SegmentTest, QuarantinedSlotsAreNeverMergedAgain) {
  FillAndTake(0, 1, KiB(0), KiB(2048));
  segment_->Quarantine({segment_->AddressOf(2), kChunk});
  Check();
  EXPECT_EQ(Picture(), "used 2048, hole 2048, quarantined 2048, hole 14336");
  Block* b = FillAndTake(1, 1, KiB(2048), KiB(1024));
  Release(b);
  EXPECT_EQ(Picture(), "used 2048, free 2048, quarantined 2048, hole 14336");
}

TEST_F(SegmentTest, FindsTheBlockOfAnAddress) {
  FillAndTake(0, 1, KiB(0), KiB(1024));
  EXPECT_EQ(segment_->Find(At(KiB(1023)))->state, BlockState::kUsed);
  EXPECT_EQ(segment_->Find(At(KiB(1024)))->state, BlockState::kFree);
  EXPECT_EQ(segment_->Find(At(KiB(20479)))->state, BlockState::kHole);
}

TEST_F(SegmentTest, DestroyedSegmentsLeaveNothingBehind) {
  FillAndTake(0, 1, KiB(0), KiB(1024));
  segment_.reset();
  EXPECT_EQ(arena_.in_use(), 0u);
  EXPECT_EQ(index_.count(), 0u);
}

TEST_F(SegmentTest, APinnedSlotOfAFreeBlockIsNotIdleUntilItIsUnpinned) {
  Block* block = FillAndTake(2, 4, kChunk * 2, kChunk * 4);
  const AddressRange pinned{segment_->AddressOf(3), kChunk};
  EXPECT_EQ(pins_.Pin(pinned, {segment_->chunk(3)}).size(), 1u);
  Release(block);
  EXPECT_EQ(queue_.idle_slots(), 3u);
  EXPECT_EQ(segment_->PinnedSlots(), 1u);
  Evict(2, 1);
  Evict(4, 2);
  EXPECT_EQ(Picture(), "hole 6144, free 2048, hole 12288");
  ASSERT_TRUE(pins_.Unpin(pinned).ok());
  EXPECT_EQ(segment_->Unpinned(pinned, epoch_), 1u);
  Check();
  EXPECT_EQ(queue_.idle_slots(), 1u);
  Evict(3, 1);
  EXPECT_EQ(Picture(), "hole 20480");
}

TEST_F(SegmentTest, ASlotThatIsUnpinnedWhileInUseIsNotIdle) {
  Block* block = FillAndTake(0, 1, Bytes(), KiB(4));
  const AddressRange pinned{segment_->AddressOf(0), kChunk};
  EXPECT_EQ(pins_.Pin(pinned, {segment_->chunk(0)}).size(), 1u);
  ASSERT_TRUE(pins_.Unpin(pinned).ok());
  EXPECT_EQ(segment_->Unpinned(pinned, epoch_), 0u);
  Check();
  Release(block);
  EXPECT_EQ(queue_.idle_slots(), 1u);
}

TEST_F(SegmentTest, DeferredSlotsAreTheLastToBeChosen) {
  FillAndFree(0, 2);
  FillAndFree(4, 2);
  segment_->Defer(SlotRun{segment_.get(), 0, 1});
  Check();
  std::vector<uint64_t> order;
  queue_.ForEach([&](const IdleExtent&, const SlotRun& chunk) {
    order.push_back(chunk.first);
    return true;
  });
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 4, 5, 0}));
  Evict(0, 2);
}

TEST_F(SegmentTest, MappedRunsAreThoseBetweenTheHoles) {
  FillAndFree(1, 2);
  FillAndTake(3, 1, kChunk * 3, KiB(4));
  FillAndTake(7, 1, kChunk * 7, kChunk);
  const std::vector<AddressRange> runs = segment_->MappedRuns();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0], (AddressRange{segment_->AddressOf(1), kChunk * 3}));
  EXPECT_EQ(runs[1], (AddressRange{segment_->AddressOf(7), kChunk}));
}

}  // namespace
}  // namespace expanse

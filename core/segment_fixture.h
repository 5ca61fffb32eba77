// For tests of segments without a driver: a segment of ten slots of 2 MiB, and numbers in place of chunks.

#ifndef EXPANSE_CORE_SEGMENT_FIXTURE_H_
#define EXPANSE_CORE_SEGMENT_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "core/block.h"
#include "core/free_index.h"
#include "core/idle_queue.h"
#include "core/segment.h"
#include "gtest/gtest.h"

namespace expanse {

class SegmentTest : public ::testing::Test {
 protected:
  static constexpr Bytes kChunk = MiB(2);
  static constexpr uint64_t kSlots = 10;
  static constexpr uint64_t kBegin = 0x7000'0000'0000;

  std::unique_ptr<Segment> MakeSegment(uint64_t begin) {
    return std::make_unique<Segment>(AddressRange{DeviceAddress(begin), kChunk * kSlots}, kChunk, reservation_, nullptr,
                                     index_, queue_, arena_, pins_, figures_);
  }
  DeviceAddress At(Bytes offset) const { return segment_->range().begin + offset; }
  // Maps `count` slots and takes [offset, offset + size) of what is then free, which must touch all of them.
  Block* FillAndTake(uint64_t slot, uint64_t count, Bytes offset, Bytes size) {
    return FillChunksAndTake(slot, std::vector<uint64_t>(count, 1), offset, size);
  }
  // The same with chunks of so many slots each.
  Block* FillChunksAndTake(uint64_t slot, const std::vector<uint64_t>& sizes, Bytes offset, Bytes size) {
    std::vector<MappedChunk> chunks;
    for (const uint64_t slots : sizes) chunks.push_back(MappedChunk{ChunkId(next_chunk_++), slots});
    Block* block = segment_->Fill(slot, chunks);
    segment_->Take(block, At(offset), size);
    Check();
    return block;
  }
  // Maps `count` slots and leaves them free and idle.
  void FillAndFree(uint64_t slot, uint64_t count) {
    const AddressRange range{segment_->AddressOf(slot), kChunk * count};
    Release(FillAndTake(slot, count, range.begin - segment_->range().begin, range.size));
  }
  Block* Take(Block* free, Bytes offset, Bytes size) {
    segment_->Take(free, At(offset), size);
    Check();
    return free;
  }
  void Release(Block* block) {
    const uint64_t idle_before = queue_.idle_slots();
    const uint64_t idle = segment_->Release(block, FreeStamp{queue_.NextStamp(), epoch_});
    EXPECT_EQ(queue_.idle_slots(), idle_before + idle);
    Check();
  }
  void Evict(uint64_t first, uint64_t count) {
    segment_->Evict(SlotRun{segment_.get(), first, count});
    Check();
  }
  void Check() const {
    ASSERT_EQ(segment_->CheckInvariants(), absl::OkStatus()) << Picture();
    ASSERT_EQ(index_.CheckInvariants(), absl::OkStatus()) << Picture();
    ASSERT_EQ(figures_.reserved.current(), kChunk * segment_->MappedSlots()) << Picture();
    ASSERT_EQ(figures_.idle.current(), kChunk * queue_.idle_slots()) << Picture();
    ASSERT_EQ(queue_.CheckInvariants(), absl::OkStatus()) << Picture();
  }
  // The blocks in order, sizes in KiB: "used 512, free 1536, hole 18432".
  std::string Picture() const {
    static constexpr const char* kNames[] = {"hole", "free", "used", "pending", "quarantined"};
    std::string picture;
    for (const Block* block = segment_->first_block(); block != nullptr; block = block->next) {
      if (!picture.empty()) picture += ", ";
      picture += kNames[static_cast<int>(block->state)];
      picture += " " + std::to_string(block->size.count() >> 10);
    }
    return picture;
  }

  Reservation reservation_;
  FreeIndex index_;
  IdleQueue queue_;
  BlockArena arena_;
  PinTable pins_;
  PoolFigures figures_;
  uint64_t epoch_ = 1;
  uint32_t next_chunk_ = 0;
  std::unique_ptr<Segment> segment_ = MakeSegment(kBegin);
};

}  // namespace expanse

#endif  // EXPANSE_CORE_SEGMENT_FIXTURE_H_

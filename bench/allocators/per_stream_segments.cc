#include "bench/allocators/per_stream_segments.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/allocators/pytorch_rules.h"
#include "vmm/driver_call.h"

namespace expanse::bench {

PerStreamSegments::PerStreamSegments(std::unique_ptr<DeviceContext> context, DeviceOrdinal device,
                                     std::optional<Bytes> limit)
    : PytorchAllocator(std::move(context), limit), device_(device) {}

PerStreamSegments::~PerStreamSegments() {
  MutexLock lock(mu_);
  // There is nobody to tell that the driver refuses.
  (void)context_->MakeCurrent();
  if (!expandable_.empty()) (void)context_->driver().ctx_synchronize();
  expandable_.clear();
}

AllocatorFigures PerStreamSegments::figures() const {
  MutexLock lock(mu_);
  AllocatorFigures figures = figures_.Report();
  figures.peak_address_space = address_space_.peak();
  figures.chunks_created = chunks_created_;
  figures.chunks_moved = 0;
  return figures;
}

Block* PerStreamSegments::FindCached(const BlockPool& pool, Bytes size) const {
  return pool.BestFitKeepingGrowable(size);
}

bool PerStreamSegments::SplitsOff(const BlockPool& /*pool*/, Bytes remainder) const {
  return remainder >= pytorch::kMinBlock;
}

absl::StatusOr<Block*> PerStreamSegments::Grow(BlockPool& pool, Bytes size) {
  absl::StatusOr<Block*> block = FindRoom(pool, size);
  if (block.ok() && (*block)->state == BlockState::kUnmapped) {
    block = MapFront(**block, std::min(size, (*block)->size));
  }
  while (block.ok() && (*block)->size < size) {
    Block& next = *(*block)->next;  // unmapped: two neighbours are never both free
    block = MapFront(next, std::min(size - (*block)->size, next.size));
  }
  return block;
}

absl::StatusOr<Block*> PerStreamSegments::FindRoom(BlockPool& pool, Bytes size) {
  const auto usable = [](const Block* block) {
    return block != nullptr && (block->state == BlockState::kFree || block->state == BlockState::kUnmapped);
  };
  for (Block* unmapped : pool.unmapped()) {
    Block* first = usable(unmapped->prev) ? unmapped->prev : unmapped;
    Bytes room;
    for (Block* block = first; room < size && usable(block); block = block->next) room += block->size;
    if (room >= size) return first;
  }
  const Bytes chunk = pytorch::ExpandableChunk(pool.small());
  const Bytes segment_size = RoundUp(context_->total_memory() / 8 * 9, chunk);
  if (size > segment_size) {
    return absl::ResourceExhaustedError(
        absl::StrCat(ToString(size), " is more than a segment's ", ToString(segment_size)));
  }
  return CreateSegment(pool, segment_size, chunk);
}

absl::StatusOr<Block*> PerStreamSegments::CreateSegment(BlockPool& pool, Bytes size, Bytes chunk) {
  auto segment = ExpandableSegment::Create(context_->driver(), device_, size, chunk);
  if (!segment.ok()) return segment.status();
  const AddressRange range = (*segment)->range();
  Block& block = AddSegment(range, pool, segment->get(), BlockState::kUnmapped);
  expandable_.emplace(range.begin, *std::move(segment));
  address_space_.Add(range.size);
  return &block;
}

absl::StatusOr<Block*> PerStreamSegments::MapFront(Block& block, Bytes size) {
  ExpandableSegment& segment = *block.segment;
  const AddressRange chunks = segment.Cover({block.address, size});
  if (absl::Status status = CheckLimit(chunks.size); !status.ok()) return status;
  const Bytes held = segment.physical();
  const uint64_t created = segment.created();
  absl::Status status = segment.Map(chunks);
  figures_.reserved.Add(segment.physical() - held);
  chunks_created_ += segment.created() - created;
  if (!status.ok()) return status;
  BlockPool& pool = *block.pool;
  pool.Remove(block);
  if (chunks.size < block.size) pool.Insert(*SplitBlock(block, chunks.size));
  return &pool.Coalesce(block, BlockState::kFree);
}

absl::Status PerStreamSegments::ReleaseIdle(BlockPool& pool) {
  const std::vector<Block*> blocks(pool.free().begin(), pool.free().end());  // unmapping changes the set
  for (Block* block : blocks) {
    if (absl::Status status = UnmapInside(*block); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PerStreamSegments::UnmapInside(Block& block) {
  ExpandableSegment& segment = *block.segment;
  const AddressRange chunks = segment.Inside({block.address, block.size});
  if (chunks.size.is_zero()) return absl::OkStatus();
  BlockPool& pool = *block.pool;
  const Driver& driver = context_->driver();
  absl::Status status = CallStatus(driver, driver.stream_synchronize(static_cast<abi::Stream>(pool.stream().raw())),
                                   EntryPoint::stream_synchronize, "before unmapping");
  if (!status.ok()) return status;
  const Bytes held = segment.physical();
  const ExpandableSegment::UnmapResult result = segment.Unmap(chunks);
  figures_.reserved.Subtract(held - segment.physical());
  if (result.unmapped.size.is_zero()) return result.status;

  pool.Remove(block);
  Block* unmapped = &block;
  if (block.address < result.unmapped.begin) {
    unmapped = SplitBlock(block, result.unmapped.begin - block.address);
    pool.Insert(block);
  }
  if (result.unmapped.size < unmapped->size) pool.Insert(*SplitBlock(*unmapped, result.unmapped.size));
  Block& whole = pool.Coalesce(*unmapped, BlockState::kUnmapped);
  if (!result.status.ok() || whole.prev != nullptr || whole.next != nullptr) return result.status;
  return CloseSegment(whole);
}

absl::Status PerStreamSegments::CloseSegment(Block& whole) {
  ExpandableSegment& segment = *whole.segment;
  const AddressRange range = segment.range();
  const Bytes held = segment.physical();
  absl::Status status = segment.Close();
  figures_.reserved.Subtract(held - segment.physical());
  if (!status.ok()) return status;
  whole.pool->Remove(whole);
  RemoveSegment(range.begin);
  expandable_.erase(range.begin);
  address_space_.Subtract(range.size);
  return absl::OkStatus();
}

absl::StatusOr<Bytes> PerStreamSegments::CheckSegment(const BlockList& segment) const {
  auto it = expandable_.find(segment.range().begin);
  if (it == expandable_.end()) return absl::InternalError("a segment has no addresses");
  const ExpandableSegment& expandable = *it->second;
  Bytes mapped;
  for (const Block* block = &segment.head(); block != nullptr; block = block->next) {
    if (block->segment != &expandable) return absl::InternalError("a block points to another segment");
    const AddressRange range = {block->address, block->size};
    if (block->state == BlockState::kUnmapped) {
      if (expandable.Inside(range) != range) return absl::InternalError("an unmapped block holds part of a chunk");
      continue;
    }
    mapped += block->size;
    if (!expandable.IsMapped(expandable.Cover(range))) return absl::InternalError("a block has unmapped addresses");
  }
  if (expandable.stranded() ? mapped > expandable.physical() : mapped != expandable.physical()) {
    return absl::InternalError("mapped blocks and chunks differ");
  }
  return expandable.physical();
}

}  // namespace expanse::bench

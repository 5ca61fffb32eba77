#include "bench/allocators/pytorch_allocator.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/allocators/pytorch_rules.h"

namespace expanse::bench {

PytorchAllocator::PytorchAllocator(std::unique_ptr<DeviceContext> context, std::optional<Bytes> limit)
    : context_(std::move(context)), limit_(limit), deferred_(context_->driver()) {}

absl::StatusOr<DeviceAddress> PytorchAllocator::Allocate(Bytes size, StreamHandle stream) {
  if (size.is_zero()) return absl::InvalidArgumentError("a request of 0 bytes: expected at least 1");
  if (size > pytorch::kLargestRequest) {
    return absl::ResourceExhaustedError(absl::StrCat("a request of ", ToString(size), " fits no device"));
  }
  const Bytes rounded = pytorch::RoundRequest(size);
  MutexLock lock(mu_);
  if (!deferred_.empty()) {
    absl::Status status = context_->MakeCurrent();
    if (status.ok())
      status = deferred_.Collect([this](Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { FinishPending(block); });
    if (!status.ok()) return status;
  }
  BlockPool& pool = PoolFor(stream, pytorch::IsSmall(rounded));
  Block* block = FindCached(pool, rounded);
  if (block == nullptr) {
    absl::StatusOr<Block*> grown = GrowOrReclaim(pool, rounded);
    if (!grown.ok()) return grown.status();
    block = *grown;
  }
  pool.Remove(*block);
  if (block->size > rounded && SplitsOff(pool, block->size - rounded)) pool.Insert(*SplitBlock(*block, rounded));
  block->state = BlockState::kLive;
  block->requested = size;
  live_.emplace(block->address, block);
  figures_.live.Add(size);
  figures_.allocated.Add(block->size);
  return block->address;
}

absl::Status PytorchAllocator::Free(DeviceAddress address, StreamHandle stream) {
  MutexLock lock(mu_);
  auto it = live_.find(address);
  if (it == live_.end()) return FindLive(address).status();
  Block* block = it->second;
  const bool elsewhere = stream != block->pool->stream();
  if (elsewhere || !block->uses.empty()) {
    if (elsewhere && std::find(block->uses.begin(), block->uses.end(), stream) == block->uses.end()) {
      block->uses.push_back(stream);
    }
    absl::Status status = context_->MakeCurrent();
    if (status.ok()) status = deferred_.Defer(*block);
    if (!status.ok()) return status;
  }
  live_.erase(it);
  figures_.live.Subtract(block->requested);
  figures_.allocated.Subtract(block->size);
  if (block->events > 0) {
    block->state = BlockState::kPending;
    figures_.pending.Add(block->size);
  } else {
    block->pool->Coalesce(*block, BlockState::kFree);
  }
  return absl::OkStatus();
}

absl::Status PytorchAllocator::RecordUse(DeviceAddress address, StreamHandle stream) {
  MutexLock lock(mu_);
  absl::StatusOr<Block*> block = FindLive(address);
  if (!block.ok()) return block.status();
  auto& uses = (*block)->uses;
  if (stream != (*block)->pool->stream() && std::find(uses.begin(), uses.end(), stream) == uses.end()) {
    uses.push_back(stream);
  }
  return absl::OkStatus();
}

AllocatorFigures PytorchAllocator::figures() const {
  MutexLock lock(mu_);
  return figures_.Report();
}

absl::StatusOr<Block*> PytorchAllocator::GrowOrReclaim(BlockPool& pool, Bytes size) {
  if (absl::Status status = context_->MakeCurrent(); !status.ok()) return status;
  absl::StatusOr<Block*> block = GrowWithinLimit(pool, size);
  if (block.ok() || !absl::IsResourceExhausted(block.status())) return block;
  if (absl::Status status = ReleaseAllIdle(); !status.ok()) return status;
  block = GrowWithinLimit(pool, size);
  if (!absl::IsResourceExhausted(block.status())) return block;
  return absl::ResourceExhaustedError(
      absl::StrCat("out of memory for ", ToString(size),
                   ", after every idle segment was given back: ", ToString(figures_.live.current()), " live, ",
                   ToString(figures_.reserved.current()), " reserved; ", block.status().message()));
}

absl::StatusOr<Block*> PytorchAllocator::GrowWithinLimit(BlockPool& pool, Bytes size) {
  if (absl::Status status = CheckLimit(pytorch::SegmentSize(size)); !status.ok()) return status;
  return Grow(pool, size);
}

absl::Status PytorchAllocator::CheckLimit(Bytes more) const {
  if (!limit_.has_value() || figures_.reserved.current() + more <= *limit_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(ToString(more), " more would exceed the limit of ", ToString(*limit_)));
}

absl::Status PytorchAllocator::ReleaseAllIdle() {
  absl::Status status =
      deferred_.WaitForAll([this](Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { FinishPending(block); });
  for (size_t i = 0; status.ok() && i < streams_.size(); ++i) status = ReleaseIdle(streams_[i]->large);
  for (size_t i = 0; status.ok() && i < streams_.size(); ++i) status = ReleaseIdle(streams_[i]->small);
  return status;
}

void PytorchAllocator::FinishPending(Block& block) {
  figures_.pending.Subtract(block.size);
  block.pool->Coalesce(block, BlockState::kFree);
}

absl::StatusOr<Block*> PytorchAllocator::FindLive(DeviceAddress address) const {
  auto it = live_.find(address);
  if (it != live_.end()) return it->second;
  return absl::InvalidArgumentError(
      absl::StrCat(ToString(address), " is not a live block: it is null, foreign, interior or already freed"));
}

BlockPool& PytorchAllocator::PoolFor(StreamHandle stream, bool small) {
  StreamPools*& pools = pools_by_stream_[stream];
  if (pools == nullptr) pools = streams_.emplace_back(std::make_unique<StreamPools>(stream)).get();
  return small ? pools->small : pools->large;
}

Block& PytorchAllocator::AddSegment(AddressRange range, BlockPool& pool, ExpandableSegment* expandable,
                                    BlockState state) {
  auto [it, inserted] = segments_.emplace(std::piecewise_construct, std::forward_as_tuple(range.begin),
                                          std::forward_as_tuple(range, &pool, expandable, state));
  pool.Insert(it->second.head());
  return it->second.head();
}

void PytorchAllocator::RemoveSegment(DeviceAddress begin) { segments_.erase(begin); }

absl::Status PytorchAllocator::CheckInvariants() const {
  MutexLock lock(mu_);
  Bytes live, allocated, pending, reserved;
  uint64_t live_blocks = 0, filed_blocks = 0, events = 0;
  for (const auto& [begin, segment] : segments_) {
    DeviceAddress expected = begin;
    for (const Block* block = &segment.head(); block != nullptr; block = block->next) {
      const std::string name = absl::StrCat("block ", ToString(AddressRange{block->address, block->size}));
      if (block->address != expected) return absl::InternalError(name + " does not begin where the last one ended");
      if (block->size.is_zero()) return absl::InternalError(name + " is empty");
      if (block->next != nullptr && block->next->prev != block)
        return absl::InternalError(name + " is not linked back");
      const bool filed = block->state == BlockState::kFree || block->state == BlockState::kUnmapped;
      if (filed && block->next != nullptr && block->next->state == block->state) {
        return absl::InternalError(name + " was not joined with the next");
      }
      const BlockPool& pool = *block->pool;
      if (pool.free().count(const_cast<Block*>(block)) != (block->state == BlockState::kFree ? 1 : 0) ||
          pool.unmapped().count(const_cast<Block*>(block)) != (block->state == BlockState::kUnmapped ? 1 : 0)) {
        return absl::InternalError(name + " is not filed as its state says");
      }
      filed_blocks += filed ? 1 : 0;
      events += block->events;
      if ((block->state == BlockState::kPending) != (block->events > 0)) {
        return absl::InternalError(name + " is pending without events, or has some without being pending");
      }
      if (block->state == BlockState::kPending) pending += block->size;
      if (block->state == BlockState::kLive) {
        auto it = live_.find(block->address);
        if (it == live_.end() || it->second != block) return absl::InternalError(name + " is live but unknown");
        ++live_blocks;
        live += block->requested;
        allocated += block->size;
      }
      expected = block->address + block->size;
    }
    if (expected != segment.range().end()) {
      return absl::InternalError(
          absl::StrCat("segment ", ToString(segment.range()), " is covered up to ", ToString(expected)));
    }
    absl::StatusOr<Bytes> physical = CheckSegment(segment);
    if (!physical.ok()) return physical.status();
    reserved += *physical;
  }
  uint64_t filed_in_pools = 0;
  for (const auto& pools : streams_) {
    filed_in_pools += pools->small.free().size() + pools->small.unmapped().size();
    filed_in_pools += pools->large.free().size() + pools->large.unmapped().size();
  }
  if (live_blocks != live_.size()) return absl::InternalError("a live address belongs to no segment");
  if (filed_blocks != filed_in_pools) return absl::InternalError("a pool holds a block that belongs to no segment");
  if (events != deferred_.queued()) return absl::InternalError("events in the queues and in the blocks differ");
  if (live != figures_.live.current() || allocated != figures_.allocated.current() ||
      pending != figures_.pending.current() || reserved != figures_.reserved.current()) {
    return absl::InternalError("live, allocated, pending or reserved is not the sum over the blocks");
  }
  if (limit_.has_value() && figures_.reserved.current() > *limit_) return absl::InternalError("the limit is exceeded");
  return absl::OkStatus();
}

}  // namespace expanse::bench

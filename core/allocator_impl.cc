#include "core/allocator_impl.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/scoped_context.h"

namespace expanse {
namespace {

const char* Describe(BlockState state) {
  switch (state) {
    case BlockState::kHole:
      return "nothing is mapped there";
    case BlockState::kFree:
      return "it is free memory: freed before, or never handed out";
    case BlockState::kUsed:
      return "it lies inside a live block";
    case BlockState::kPending:
      return "it was freed before, and another stream may still use it";
    case BlockState::kQuarantined:
      return "it is quarantined after a failed driver call";
  }
  return "unknown";
}

}  // namespace

Allocator::Impl::Impl(std::unique_ptr<Device> device, const AllocatorOptions& options, Bytes chunk_size)
    : device_(std::move(device)),
      options_(options),
      addresses_(*device_, chunk_size, ProcessAddressBudget()),
      supply_(*device_, chunk_size, device_->total_memory(), ProcessHandleBudget()),
      events_(*device_),
      recorder_(options.record_events),
      mover_(supply_, idle_queue_, hooks_, recorder_),
      grower_(supply_, mover_, hooks_, recorder_, options.growth, options.chunk_size.has_value()),
      age_log_(options.trim_after),
      peer_(std::in_place, options.device, [this](Bytes wanted) { return GiveBackToOthers(wanted); }) {}

bool Allocator::Impl::Quiesce() {
  abi::Result result = abi::kUnknown;
  for (int attempt = 0; attempt < 2 && result != abi::kSuccess; ++attempt) {
    const absl::StatusOr<ScopedContext> context = ScopedContext::Enter(*device_);
    if (context.ok()) result = device_->driver().ctx_synchronize();
  }
  return result == abi::kSuccess || IsStickyError(result) || result == abi::kDeinitialized;
}

void Allocator::Impl::Abandon() {
  peer_.reset();
  MutexLock lock(mu_);
  hooks_ = MappingHooks();
}

void Allocator::Impl::KeepForever(std::unique_ptr<Impl> impl) {
  static std::atomic<Impl*> kept{nullptr};
  Impl* const head = impl.release();
  head->next_kept_ = kept.load(std::memory_order_relaxed);
  while (!kept.compare_exchange_weak(head->next_kept_, head)) {
  }
}

absl::Status Allocator::Impl::ReserveAddresses() {
  MutexLock lock(mu_);
  const absl::Status status = addresses_.ReserveFirst(options_.address_space_multiple);
  UpdateFigures();
  return status;
}

void Allocator::Impl::SettlePending(Block* block) {
  for (FigureCounter* figure : {&pending_, &block->segment->heap()->pool().figures().pending}) {
    figure->Subtract(block->size);
  }
  if (recorder_.on()) {
    const uint32_t stream = block->segment->heap()->stream()->number();
    recorder_.Add({block->begin.value(), block->requested(), stream, 0, SnapshotEventKind::kSettle});
  }
  ReleaseBlock(block);
}

size_t Allocator::Impl::SettleComplete(CompletionCheck& completion) {
  const PendingQueue::Blocks complete = pending_queue_.TakeComplete(completion);
  for (Block* block : complete) SettlePending(block);
  return complete.size();
}

absl::Status Allocator::Impl::NoSuchSize(Bytes size) const {
  if (size.is_zero()) return absl::InvalidArgumentError("asked for 0 bytes, expected at least 1");
  return absl::InvalidArgumentError(absl::StrCat(
      "asked for ", ToString(size), ", which is more than the device's memory of ", ToString(device_->total_memory())));
}

absl::StatusOr<Block*> Allocator::Impl::FindLive(DeviceAddress address) const {
  if (Block* block = live_.Find(address); block != nullptr) return block;
  return NotLive(address);
}

absl::Status Allocator::Impl::NotLive(DeviceAddress address) const {
  std::string found = address.is_null() ? "it is null" : "it is not in any range of this allocator";
  if (const Segment* segment = FindSegment(address); segment != nullptr) {
    const Block* block = segment->Find(address);
    found = absl::StrCat(Describe(block->state), " (", ToString(block->range()), ")");
  }
  return absl::InvalidArgumentError(absl::StrCat("address ", ToString(address), " is not a live block: ", found));
}

Segment* Allocator::Impl::FindSegment(DeviceAddress address) const {
  for (StreamHeap* heap : pools_.Heaps()) {
    for (int size_class = 0; size_class < kSizeClassCount; ++size_class) {
      for (const std::unique_ptr<Segment>& segment : heap->set(size_class).segments) {
        if (segment->range().Contains(address)) return segment.get();
      }
    }
  }
  return nullptr;
}

void Allocator::Impl::DropEmptySegments(bool of_live_streams) {
  if (!of_live_streams && streams_.retired() == 0 && pools_.retired() == 0) return;
  bool compacted = false;
  for (StreamHeap* heap : pools_.Heaps()) {
    if (!of_live_streams && !heap->stream()->detached() && !heap->pool().retired()) continue;
    const bool deterministic = heap->placement() != nullptr;
    if (deterministic && !heap->pool().retired()) continue;  // where its segments lie must not depend on this
    for (int size_class = 0; size_class < kSizeClassCount; ++size_class) {
      std::vector<std::unique_ptr<Segment>>& segments = heap->set(size_class).segments;
      for (size_t i = segments.size(); i > 0; --i) {
        const Segment& segment = *segments[i - 1];
        if (!segment.IsEmpty()) continue;
        // The queue's stale extents may still name the segment.
        if (!std::exchange(compacted, true)) idle_queue_.Compact();
        (deterministic ? *pool_addresses_.at(heap->pool().id()) : addresses_)
            .Give(Slab{segment.range(), &segment.reservation()});
        if (deterministic) heap->placement()->RemoveSegment(segment);
        segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i - 1));
      }
    }
  }
  for (PoolState* pool : pools_.Pools()) pool->ForgetEmptyDetached();
  for (const PoolId forgotten : pools_.ForgetEmptyRetired()) pool_addresses_.erase(forgotten);
  streams_.ForgetUnusedRetired();
}

}  // namespace expanse

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

absl::StatusOr<DeviceAddress> Allocator::Impl::Allocate(Bytes size, StreamHandle stream, PoolId pool) {
  if (size.is_zero()) return absl::InvalidArgumentError("asked for 0 bytes, expected at least 1");
  if (size > device_->total_memory()) {
    return absl::InvalidArgumentError(absl::StrCat("asked for ", ToString(size),
                                                   ", which is more than the device's memory of ",
                                                   ToString(device_->total_memory())));
  }
  const StreamKey key = StreamKey::Of(stream);
  std::optional<SoftLimitWarning> warning;
  const absl::StatusOr<DeviceAddress> address = Serve(size, key, pool, warning);
  if (warning) warning->Give();
  return address;
}

absl::StatusOr<DeviceAddress> Allocator::Impl::Serve(Bytes size, StreamKey key, PoolId pool,
                                                     std::optional<SoftLimitWarning>& warning) {
  const StallCountingLock lock(mu_, &lock_stalls_);
  const absl::StatusOr<PoolState*> from = pools_.Find(pool);
  if (!from.ok()) return from.status();
  const Request request{size, RoundUp(size, kBlockAlignment), key, *from};
  Block* block = TakeAtHand(request);
  if (block == nullptr) {
    absl::StatusOr<Block*> found = AllocateSlowly(request);
    UpdateFigures();
    warning = soft_limit_.TakeDue();
    if (!found.ok()) return found.status();
    block = *found;
  }
  HandOut(block, request.asked);
  if (age_log_ && NoteAge()) (void)GiveBackOld();
  return block->begin;
}

StreamHeap& Allocator::Impl::HeapFor(const Request& request) {
  if (StreamHeap* heap = request.pool->Find(request.stream); heap != nullptr) return *heap;
  return request.pool->Add(streams_.FindOrAdd(request.stream));
}

// A device that once refused to create is shared with others, who can take what the limit leaves.
int Allocator::Impl::ClassOf(const Request& request) const {
  const ChunkPool& chunks = supply_.pool();
  const bool plentiful = supply_.refusals() == 0 && IsPlentiful(chunks.bytes(), chunks.bytes_left());
  return SizeClassOf(request.rounded, plentiful);
}

SegmentSet& Allocator::Impl::SetFor(const Request& request) {
  return HeapFor(request).set(request.pool->options().deterministic ? 0 : ClassOf(request));
}

Block* Allocator::Impl::TakeAtHand(const Request& request) {
  StreamHeap& heap = HeapFor(request);
  if (FixedPlacement* placement = heap.placement()) return placement->TakeMapped(request.rounded);
  Block* block = heap.set(ClassOf(request)).free_index.BestFit(request.rounded);
  if (block != nullptr) block->segment->Take(block, block->begin, request.rounded);
  return block;
}

void Allocator::Impl::HandOut(Block* block, Bytes asked) {
  block->requested = asked;
  live_.emplace(block->begin, block);
  PoolFigures& pool = block->segment->heap()->pool().figures();
  for (FigureCounter* live : {&live_bytes_, &pool.live}) live->Add(asked);
  for (FigureCounter* allocated : {&allocated_, &pool.allocated}) allocated->Add(block->size);
  ++counts_.allocations;
  if (recorder_.on()) {
    const uint32_t stream = block->segment->heap()->stream()->number();
    recorder_.Add({block->begin.value(), asked, stream, 0, SnapshotEventKind::kAllocate});
  }
  UpdateFigures();
}

absl::Status Allocator::Impl::Free(DeviceAddress address, std::optional<StreamHandle> stream) {
  const StallCountingLock lock(mu_, &lock_stalls_);
  const absl::StatusOr<Block*> found = FindLive(address);
  if (!found.ok()) return found.status();
  Block* block = *found;
  const StreamHeap& heap = *block->segment->heap();
  const std::shared_ptr<StreamState>& own = heap.stream();

  uint32_t last_stream = own->number();
  std::vector<std::shared_ptr<StreamState>> users;
  if (block->users != nullptr) users = std::move(*block->users);
  if (stream) {
    const std::shared_ptr<StreamState>& last = Named(*stream);
    last_stream = last->number();
    if (last != own && std::find(users.begin(), users.end(), last) == users.end()) users.push_back(last);
  }
  block->users.reset();
  if (heap.placement() != nullptr) heap.placement()->Vacate(block);
  live_.erase(address);
  PoolFigures& pool = heap.pool().figures();
  for (FigureCounter* live : {&live_bytes_, &pool.live}) live->Subtract(block->requested);
  for (FigureCounter* allocated : {&allocated_, &pool.allocated}) allocated->Subtract(block->size);
  ++counts_.frees;

  const bool of_retired_pool = heap.pool().retired();
  PendingBlock pending{block, {}, 0};
  for (std::shared_ptr<StreamState>& user : users) {
    // If the driver will not record an event, the epoch stays open, and whoever needs the memory tries again.
    uint64_t epoch = user->current_epoch();
    if (!user->detached()) (void)user->Close(events_, *device_);
    if (!user->IsComplete(epoch)) pending.tickets.push_back(Ticket{std::move(user), epoch});
  }
  if (recorder_.on()) {
    const auto kind = pending.tickets.empty() ? SnapshotEventKind::kFree : SnapshotEventKind::kFreePending;
    recorder_.Add({address.value(), block->requested, own->number(), last_stream, kind});
  }
  if (pending.tickets.empty()) {
    ReleaseBlock(block);
  } else {
    pending.number = idle_queue_.NextStamp();
    block->segment->SetPending(block);
    for (FigureCounter* figure : {&pending_, &pool.pending}) figure->Add(block->size);
    pending_queue_.Push(std::move(pending));
    // Driver calls are being made anyway: see what is complete by now, at one query a free beyond those that pay.
    CompletionCheck completion(events_, *device_);
    for (Block* done : pending_queue_.TakeCompleteAtFront(completion)) SettlePending(done);
  }
  if (of_retired_pool) ReclaimRetiredPools();
  if (age_log_ && NoteAge()) (void)GiveBackOld();
  UpdateFigures();
  return absl::OkStatus();
}

void Allocator::Impl::ReleaseBlock(Block* block) {
  StreamState& stream = *block->segment->heap()->stream();
  stream.AddIdle(block->segment->Release(block, FreeStamp{idle_queue_.NextStamp(), stream.current_epoch()}));
  if (early_closes_left_ == 0 || stream.idle_in_epoch() < kIdleChunksPerEpoch) return;
  // Only its own thread can name a per-thread stream, and it need not be the one that frees.
  if (stream.detached() || stream.key().is_per_thread()) return;
  --early_closes_left_;
  (void)stream.Close(events_, *device_);  // after a refusal the epoch is open as before
}

void Allocator::Impl::SettlePending(Block* block) {
  for (FigureCounter* figure : {&pending_, &block->segment->heap()->pool().figures().pending}) {
    figure->Subtract(block->size);
  }
  if (recorder_.on()) {
    const uint32_t stream = block->segment->heap()->stream()->number();
    recorder_.Add({block->begin.value(), block->requested, stream, 0, SnapshotEventKind::kSettle});
  }
  ReleaseBlock(block);
}

size_t Allocator::Impl::SettleComplete(CompletionCheck& completion) {
  const std::vector<Block*> complete = pending_queue_.TakeComplete(completion);
  for (Block* block : complete) SettlePending(block);
  return complete.size();
}

absl::StatusOr<Block*> Allocator::Impl::FindLive(DeviceAddress address) const {
  const auto it = live_.find(address);
  if (it != live_.end()) return it->second;
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

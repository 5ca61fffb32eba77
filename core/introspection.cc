// The part of the allocator that tells what it holds and what it was asked for.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/allocator_impl.h"
#include "core/segment_sums.h"

namespace expanse {
namespace {

uint64_t Microseconds(std::chrono::system_clock::time_point time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

SnapshotBlockState StateOf(BlockState state) {
  switch (state) {
    case BlockState::kUsed:
      return SnapshotBlockState::kLive;
    case BlockState::kPending:
      return SnapshotBlockState::kPending;
    case BlockState::kQuarantined:
      return SnapshotBlockState::kQuarantined;
    case BlockState::kFree:
    case BlockState::kHole:  // holes are left out
      break;
  }
  return SnapshotBlockState::kFree;
}

SnapshotSegment Describe(const Segment& segment, int size_class, const PinTable& pins) {
  SnapshotSegment described;
  described.address = segment.range().begin;
  described.size = segment.range().size;
  described.stream = segment.heap()->stream()->number();
  described.pool = segment.heap()->pool().id().value();
  described.size_class = size_class;
  for (const Block* block = segment.first_block(); block != nullptr; block = block->next) {
    if (block->state == BlockState::kHole) continue;
    described.blocks.push_back(SnapshotBlock{block->begin, block->size, block->requested(), StateOf(block->state)});
  }
  const uint64_t slots = segment.range().size / segment.slot_size();
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const ChunkId chunk = segment.chunk(slot);
    if (chunk.is_none() || segment.ChunkAt(slot).first != slot) continue;
    described.chunks.push_back(SnapshotChunk{chunk.index(), segment.AddressOf(slot),
                                             segment.slot_size() * segment.ChunkAt(slot).count,
                                             segment.stamp(slot) != 0 && !pins.IsPinned(chunk)});
  }
  return described;
}

std::vector<SnapshotEvent> Describe(const Recorder& recorder) {
  std::vector<SnapshotEvent> events;
  events.reserve(static_cast<size_t>(recorder.end() - recorder.first()));
  for (uint64_t number = recorder.first(); number < recorder.end(); ++number) {
    const RecordedEvent& event = recorder.event(number);
    SnapshotEvent described;
    described.kind = event.kind;
    described.bytes = event.bytes;
    described.stream = event.stream;
    described.other = event.other;
    described.time_us = Microseconds(recorder.time(number));
    if (event.kind == SnapshotEventKind::kMark) {
      described.label = recorder.label(event);
    } else if (event.kind == SnapshotEventKind::kOutOfMemory) {
      described.device_free = Bytes(event.address);
    } else {
      described.address = DeviceAddress(event.address);
    }
    events.push_back(std::move(described));
  }
  return events;
}

}  // namespace

Snapshot Allocator::Impl::TakeSnapshot() const {
  MutexLock lock(mu_);
  Snapshot snapshot;
  snapshot.device = device_->ordinal().value();
  snapshot.device_memory = device_->total_memory();
  snapshot.limit = limit_;
  snapshot.time_us = Microseconds(std::chrono::system_clock::now());
  snapshot.spare_chunks = supply_.pool().chunks(ChunkState::kSpare).count();
  snapshot.stats = CurrentStats();
  for (const std::shared_ptr<StreamState>& stream : streams_.Streams()) {
    const auto handle = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(stream->key().raw));
    snapshot.streams.push_back(SnapshotStream{stream->number(), handle, stream->key().thread, stream->detached()});
  }
  std::sort(snapshot.streams.begin(), snapshot.streams.end(),
            [](const SnapshotStream& a, const SnapshotStream& b) { return a.number < b.number; });
  for (const PoolState* pool : pools_.Pools()) {
    const PoolOptions& options = pool->options();
    snapshot.pools.push_back(SnapshotPool{pool->id().value(), options.name, options.limit, pool->retired()});
    for (const StreamHeap* heap : pool->Heaps()) {
      for (int size_class = 0; size_class < kSizeClassCount; ++size_class) {
        for (const std::unique_ptr<Segment>& segment : heap->set(size_class).segments) {
          snapshot.segments.push_back(Describe(*segment, size_class, pins_));
        }
      }
    }
  }
  std::sort(snapshot.segments.begin(), snapshot.segments.end(),
            [](const SnapshotSegment& a, const SnapshotSegment& b) { return a.address < b.address; });
  snapshot.events = Describe(recorder_);
  return snapshot;
}

absl::Status Allocator::Impl::Mark(std::string_view label) {
  MutexLock lock(mu_);
  return recorder_.Mark(label);
}

absl::StatusOr<std::string> Allocator::Impl::GetRecording() const {
  MutexLock lock(mu_);
  if (!recorder_.on()) return absl::FailedPreconditionError("nothing is recorded: record_events is 0");
  std::vector<RecordedBlock> live;
  live.reserve(live_.size());
  live_.ForEach([&live](const Block* block) {
    live.push_back(RecordedBlock{block->begin, block->requested(), block->segment->heap()->stream()->number()});
  });
  return FormatRecording(recorder_, live);
}

HeapStats Allocator::Impl::GetStreamStats(StreamHandle stream) const {
  const StreamKey key = StreamKey::Of(stream);
  MutexLock lock(mu_);
  SegmentSums sums;
  for (PoolState* pool : pools_.Pools()) {
    if (const StreamHeap* heap = pool->Find(key); heap != nullptr) sums.Add(*heap);
  }
  return sums.stats();
}

}  // namespace expanse

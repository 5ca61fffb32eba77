#include "bench/allocators/expanse_adapter.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace expanse::bench {

absl::StatusOr<std::unique_ptr<BenchAllocator>> ExpanseAdapter::Create(std::unique_ptr<DeviceContext> context,
                                                                       const BenchAllocatorOptions& options) {
  AllocatorOptions core;
  core.device = options.device;
  core.chunk_size = options.chunk_size;
  core.limit = options.limit;
  core.growth = options.growth;
  core.record_events = options.record_events;
  auto allocator = Allocator::Create(context->driver(), core);
  if (!allocator.ok()) return allocator.status();
  if (options.prewarm) {
    if (absl::Status status = (*allocator)->Prewarm(*options.prewarm); !status.ok()) return status;
  }
  return absl::WrapUnique<BenchAllocator>(
      new ExpanseAdapter(std::move(context), *std::move(allocator), core.record_events > 0));
}

ExpanseAdapter::ExpanseAdapter(std::unique_ptr<DeviceContext> context, std::unique_ptr<Allocator> allocator,
                               bool records)
    : context_(std::move(context)), allocator_(std::move(allocator)), records_(records) {}

absl::StatusOr<DeviceAddress> ExpanseAdapter::Allocate(Bytes size, StreamHandle stream) {
  if (size > context_->total_memory()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a request of ", ToString(size), " on a device of ", ToString(context_->total_memory())));
  }
  return allocator_->Allocate(size, stream);
}

absl::Status ExpanseAdapter::Free(DeviceAddress address, StreamHandle stream) {
  return allocator_->Free(address, stream);
}

absl::Status ExpanseAdapter::RecordUse(DeviceAddress address, StreamHandle stream) {
  return allocator_->RecordUse(address, stream);
}

absl::Status ExpanseAdapter::Mark(std::string_view label) {
  return records_ ? allocator_->Mark(label) : absl::OkStatus();
}

AllocatorFigures ExpanseAdapter::figures() const {
  const Stats stats = allocator_->GetStats();
  AllocatorFigures figures;
  figures.live = stats.live.current;
  figures.allocated = stats.allocated.current;
  figures.pending = stats.pending.current;
  figures.reserved = stats.reserved.current;
  figures.peak_live = stats.live.peak;
  figures.peak_allocated = stats.allocated.peak;
  figures.peak_pending = stats.pending.peak;
  figures.peak_reserved = stats.reserved.peak;
  figures.peak_address_space = stats.address_space.peak;
  figures.chunks_created = stats.chunks_created;
  figures.chunks_moved = stats.chunks_moved;
  return figures;
}

absl::Status ExpanseAdapter::CheckInvariants() const { return allocator_->CheckInvariants(); }

}  // namespace expanse::bench

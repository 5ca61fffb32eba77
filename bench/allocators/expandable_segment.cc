#include "bench/allocators/expandable_segment.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "vmm/driver_call.h"

namespace expanse::bench {

absl::StatusOr<std::unique_ptr<ExpandableSegment>> ExpandableSegment::Create(const Driver& driver, DeviceOrdinal device,
                                                                             Bytes size, Bytes chunk) {
  // Small and large chunks alike lie on 2 MiB boundaries, the granularity of every device so far.
  absl::StatusOr<Reservation> reservation = Reservation::Reserve(driver, size, MiB(2));
  if (!reservation.ok()) return reservation.status();
  return absl::WrapUnique(new ExpandableSegment(driver, device, *std::move(reservation), chunk));
}

ExpandableSegment::ExpandableSegment(const Driver& driver, DeviceOrdinal device, Reservation reservation, Bytes chunk)
    : driver_(driver), device_(device), reservation_(std::move(reservation)), chunk_(chunk) {}

ExpandableSegment::~ExpandableSegment() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].mapped) (void)UnmapSlot(i);
  }
}

AddressRange ExpandableSegment::Cover(AddressRange inner) const {
  const Bytes begin = RoundDown(inner.begin - range().begin, chunk_);
  const Bytes end = RoundUp(inner.end() - range().begin, chunk_);
  return {range().begin + begin, end - begin};
}

AddressRange ExpandableSegment::Inside(AddressRange outer) const {
  const Bytes begin = RoundUp(outer.begin - range().begin, chunk_);
  const Bytes end = RoundDown(outer.end() - range().begin, chunk_);
  return {range().begin + begin, end > begin ? end - begin : Bytes()};
}

bool ExpandableSegment::IsMapped(AddressRange chunks) const {
  const size_t end = IndexOf(chunks.end());
  if (end > slots_.size()) return false;
  return std::all_of(slots_.begin() + IndexOf(chunks.begin), slots_.begin() + end,
                     [](const Slot& slot) { return slot.mapped; });
}

absl::Status ExpandableSegment::Map(AddressRange chunks) {
  const size_t begin = IndexOf(chunks.begin);
  const size_t end = IndexOf(chunks.end());
  if (slots_.size() < end) slots_.resize(end);
  absl::Status status;
  for (size_t i = begin; status.ok() && i < end; ++i) status = CreateSlot(i);
  for (size_t i = begin; status.ok() && i < end; ++i) status = MapSlot(i);
  if (status.ok()) status = OpenAccess(chunks);
  if (status.ok()) return status;
  for (size_t i = begin; i < end; ++i) {
    if (!UnmapSlot(i).ok() || !ReleaseSlot(i).ok()) stranded_ = true;
  }
  return status;
}

ExpandableSegment::UnmapResult ExpandableSegment::Unmap(AddressRange chunks) {
  const size_t begin = IndexOf(chunks.begin);
  const size_t end = IndexOf(chunks.end());
  for (size_t i = begin; i < end; ++i) {
    if (absl::Status status = UnmapSlot(i); !status.ok()) return {{chunks.begin, chunk_ * (i - begin)}, status};
    if (absl::Status status = ReleaseSlot(i); !status.ok()) {
      stranded_ = true;
      return {{chunks.begin, chunk_ * (i + 1 - begin)}, status};
    }
  }
  return {chunks, absl::OkStatus()};
}

absl::Status ExpandableSegment::Close() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (absl::Status status = UnmapSlot(i); !status.ok()) return status;
    if (absl::Status status = ReleaseSlot(i); !status.ok()) return status;
  }
  return reservation_.Free();
}

// Each of these does nothing where the slot is in the wanted state already.

absl::Status ExpandableSegment::CreateSlot(size_t index) {
  Slot& slot = slots_[index];
  if (!slot.chunk.empty()) return absl::OkStatus();
  absl::StatusOr<Chunk> chunk = Chunk::Create(driver_, device_, chunk_, ChunkKind());
  if (!chunk.ok()) return chunk.status();
  slot.chunk = *std::move(chunk);
  ++held_;
  ++created_;
  return absl::OkStatus();
}

absl::Status ExpandableSegment::MapSlot(size_t index) {
  Slot& slot = slots_[index];
  if (slot.mapped) return absl::OkStatus();
  const DeviceAddress address = AddressOf(index);
  absl::Status status =
      CallStatus(driver_, driver_.mem_map(address.value(), chunk_.count(), 0, slot.chunk.handle(), 0),
                 EntryPoint::mem_map, "address=0x", absl::Hex(address.value()), ", size=", chunk_.count());
  slot.mapped = status.ok();
  return status;
}

absl::Status ExpandableSegment::UnmapSlot(size_t index) {
  Slot& slot = slots_[index];
  if (!slot.mapped) return absl::OkStatus();
  const DeviceAddress address = AddressOf(index);
  absl::Status status = CallStatus(driver_, driver_.mem_unmap(address.value(), chunk_.count()), EntryPoint::mem_unmap,
                                   "address=0x", absl::Hex(address.value()), ", size=", chunk_.count());
  slot.mapped = !status.ok();
  return status;
}

absl::Status ExpandableSegment::ReleaseSlot(size_t index) {
  Slot& slot = slots_[index];
  if (slot.chunk.empty()) return absl::OkStatus();
  absl::Status status = slot.chunk.Release();
  if (status.ok()) --held_;
  return status;
}

absl::Status ExpandableSegment::OpenAccess(AddressRange chunks) {
  const abi::AccessDesc access = {{abi::kLocationDevice, device_.value()}, abi::kAccessReadWrite};
  return CallStatus(driver_, driver_.mem_set_access(chunks.begin.value(), chunks.size.count(), &access, 1),
                    EntryPoint::mem_set_access, "address=0x", absl::Hex(chunks.begin.value()),
                    ", size=", chunks.size.count());
}

}  // namespace expanse::bench

#include "vmm/sim/allocation_table.h"

#include "absl/strings/str_cat.h"

namespace expanse::sim {

Allocation* AllocationTable::Add(DeviceOrdinal device, Bytes size, uint64_t offset, const abi::AllocationProp& prop,
                                 bool classic) {
  auto allocation = std::make_unique<Allocation>();
  allocation->id = static_cast<AllocationId>(next_number_);
  allocation->device = device;
  allocation->size = size;
  allocation->offset = offset;
  allocation->prop = prop;
  allocation->classic = classic;
  allocation->references = classic ? 0 : 1;
  references_ += allocation->references;
  classic_count_ += classic ? 1 : 0;
  return allocations_.emplace(next_number_++, std::move(allocation)).first->second.get();
}

Allocation* AllocationTable::Find(abi::MemHandle handle) const {
  const auto it = allocations_.find(handle);
  if (it == allocations_.end() || it->second->references == 0) return nullptr;
  return it->second.get();
}

void AllocationTable::AddReference(Allocation& allocation) {
  ++allocation.references;
  ++references_;
}

void AllocationTable::DropReference(Allocation& allocation) {
  --allocation.references;
  --references_;
}

void AllocationTable::Erase(const Allocation& allocation) {
  classic_count_ -= allocation.classic ? 1 : 0;
  allocations_.erase(HandleOf(allocation));
}

absl::Status AllocationTable::CheckInvariants() const {
  uint64_t references = 0, classic = 0;
  for (const auto& [number, allocation] : allocations_) {
    if (number != HandleOf(*allocation) || number >= next_number_ || allocation->dead() ||
        (allocation->classic && allocation->references != 0)) {
      return absl::InternalError(absl::StrCat("allocation ", number, ": ", allocation->references, " references, ",
                                              allocation->mappings, " mappings, classic ", allocation->classic));
    }
    references += allocation->references;
    classic += allocation->classic ? 1 : 0;
  }
  if (references == references_ && classic == classic_count_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("allocations: ", references, " references counted as ", references_, ", ",
                                          classic, " classic counted as ", classic_count_));
}

}  // namespace expanse::sim

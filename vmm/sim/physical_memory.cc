#include "vmm/sim/physical_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse::sim {

absl::StatusOr<PhysicalMemory> PhysicalMemory::Create(const DeviceConfig& device, const Config& config) {
  PhysicalMemory memory(device.total_memory, config.poison, config.quirks.release_lag);
  if (config.memory == MemoryMode::kReal) {
    std::optional<SparseFile> file = SparseFile::Create("expanse-simulated-device");
    if (file) memory.file_.emplace(std::move(*file));
    if (!file) return absl::ResourceExhaustedError("the host refuses a file for the device's memory");
  }
  return memory;
}

Bytes PhysicalMemory::available() const {
  const Bytes used = committed_ + others_ + lagging_;
  return used < total_ ? total_ - used : Bytes();
}

std::optional<uint64_t> PhysicalMemory::Commit(Bytes size) {
  if (size > available()) return std::nullopt;
  uint64_t offset = 0;
  if (file_) {
    offset = file_->TakeOffset(size);
    // The host itself may be out of memory here, which looks like a device that is.
    if (poison_ && !file_->Fill(offset, kPoison, size)) {
      file_->Discard(offset, size);
      return std::nullopt;
    }
  }
  committed_ += size;
  peak_ = std::max(peak_, committed_);
  return offset;
}

void PhysicalMemory::Free(uint64_t offset, Bytes size) {
  if (file_) file_->Discard(offset, size);
  committed_ -= size;
  if (lag_) lagging_ += size;
}

absl::Status PhysicalMemory::CheckInvariants() const {
  if (committed_ <= peak_ && committed_ <= total_ && (lag_ || lagging_.is_zero())) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("physical memory: committed ", ToString(committed_), ", peak ",
                                          ToString(peak_), ", total ", ToString(total_), ", lagging ",
                                          ToString(lagging_)));
}

}  // namespace expanse::sim

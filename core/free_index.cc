#include "core/free_index.h"

#include "absl/strings/str_cat.h"

namespace expanse {

Bytes FreeIndex::LargestSize() const {
  for (size_t word = kWords; word-- > 0;) {
    if (occupied_[word] == 0) continue;
    return bins_[word * 64 + 63 - static_cast<size_t>(absl::countl_zero(occupied_[word]))].Last()->size;
  }
  return Bytes();
}

absl::Status FreeIndex::CheckInvariants() const {
  absl::Status status;
  Bytes sum;
  size_t count = 0;
  // Blocks in a bin whose bit is not set would be missing from the sums.
  for (size_t bin = FirstOccupied(0); bin < kBins; bin = FirstOccupied(bin + 1)) {
    if (bins_[bin].empty()) {
      status.Update(absl::InternalError(absl::StrCat("free index: bin ", bin, " has no blocks, but its bit is set")));
    }
    status.Update(bins_[bin].CheckInvariants());
    bins_[bin].ForEach([&](const Block& block) {
      sum += block.size;
      ++count;
      if (block.state == BlockState::kFree && BinOf(block.size) == bin) return;
      status.Update(absl::InternalError(
          absl::StrCat("free index: ", ToString(block.range()), " is not free, or not in the bin of its size")));
    });
  }
  if (sum != bytes_ || count != count_) {
    status.Update(absl::InternalError(absl::StrCat("free index: counts ", count_, " blocks of ", ToString(bytes_),
                                                   ", its bins have ", count, " of ", ToString(sum))));
  }
  return status;
}

}  // namespace expanse

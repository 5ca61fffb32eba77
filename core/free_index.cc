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
  for (size_t bin = 0; bin < kBins; ++bin) {
    const bool empty = bins_[bin].empty();
    if (empty == ((occupied_[bin / 64] >> (bin % 64) & 1) != 0)) {
      status.Update(absl::InternalError(absl::StrCat("free index: the bit of bin ", bin, " is wrong")));
    }
    if (empty) continue;
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

#include "core/pin_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace expanse {

std::vector<ChunkId> PinTable::Pin(AddressRange range, std::vector<ChunkId> chunks) {
  std::vector<ChunkId> newly;
  for (const ChunkId chunk : chunks) {
    if (counts_.size() <= chunk.index()) counts_.resize(chunk.index() + size_t{1});
    if (counts_[chunk.index()]++ == 0) newly.push_back(chunk);
  }
  Pinned& pinned = ranges_[{range.begin, range.size}];
  pinned.chunks = std::move(chunks);
  ++pinned.times;
  return newly;
}

absl::StatusOr<std::vector<ChunkId>> PinTable::Unpin(AddressRange range) {
  const auto it = ranges_.find({range.begin, range.size});
  if (it == ranges_.end()) {
    return absl::NotFoundError(absl::StrCat("address ", ToString(range.begin), ": the ", ToString(range.size),
                                            " from there on are not pinned, expected a range that was pinned and not "
                                            "unpinned since"));
  }
  std::vector<ChunkId> no_longer;
  for (const ChunkId chunk : it->second.chunks) {
    if (--counts_[chunk.index()] == 0) no_longer.push_back(chunk);
  }
  if (--it->second.times == 0) ranges_.erase(it);
  return no_longer;
}

absl::Status PinTable::CheckInvariants() const {
  std::vector<uint32_t> counted(counts_.size());
  for (const auto& [range, pinned] : ranges_) {
    if (pinned.times == 0 || pinned.chunks.empty()) {
      return absl::InternalError(absl::StrCat("the range at ", ToString(range.first), " is kept and pins nothing"));
    }
    for (const ChunkId chunk : pinned.chunks) counted[chunk.index()] += pinned.times;
  }
  const auto [kept, found] = std::mismatch(counts_.begin(), counts_.end(), counted.begin());
  if (kept == counts_.end()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("chunk ", kept - counts_.begin(), " has ", *kept, " pins on the books, counted ", *found));
}

}  // namespace expanse

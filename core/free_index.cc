#include "core/free_index.h"

#include "absl/strings/str_cat.h"

namespace expanse {

void FreeIndex::Insert(Block* block) {
  blocks_.insert(Entry{block->size, block->begin, block});
  bytes_ += block->size;
}

void FreeIndex::Erase(Block* block) {
  blocks_.erase(Entry{block->size, block->begin, block});
  bytes_ -= block->size;
}

Block* FreeIndex::BestFit(Bytes size) const {
  const auto it = blocks_.lower_bound(Entry{size, DeviceAddress(), nullptr});
  return it == blocks_.end() ? nullptr : it->block;
}

Bytes FreeIndex::LargestSize() const { return blocks_.empty() ? Bytes() : blocks_.rbegin()->size; }

bool FreeIndex::Contains(const Block* block) const {
  const auto it = blocks_.find(Entry{block->size, block->begin, nullptr});
  return it != blocks_.end() && it->block == block;
}

absl::Status FreeIndex::CheckInvariants() const {
  Bytes sum;
  for (const Entry& entry : blocks_) {
    sum += entry.size;
    const Block& block = *entry.block;
    if (block.state != BlockState::kFree || block.size != entry.size || block.begin != entry.begin) {
      return absl::InternalError(absl::StrCat("free index: the entry for ",
                                              ToString(AddressRange{entry.begin, entry.size}),
                                              " does not match its block ", ToString(block.range())));
    }
  }
  if (sum != bytes_) {
    return absl::InternalError(
        absl::StrCat("free index: counts ", ToString(bytes_), ", its entries sum to ", ToString(sum)));
  }
  return absl::OkStatus();
}

}  // namespace expanse

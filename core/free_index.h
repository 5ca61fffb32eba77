// The free mapped blocks of one segment set, by size and address: where best fit looks.

#ifndef EXPANSE_CORE_FREE_INDEX_H_
#define EXPANSE_CORE_FREE_INDEX_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/numeric/bits.h"
#include "absl/status/status.h"
#include "core/block.h"
#include "core/block_tree.h"
#include "vmm/units.h"

namespace expanse {

// Blocks of similar sizes share a bin, which keeps them in order, and a bitmap says which bins have any. As there are
// many bins, as in TLSF, a bin has few blocks; as it is ordered, unlike TLSF's, the fit is the best one. What that
// costs does not grow with the number of free blocks as long as their sizes differ, and with its logarithm if they do
// not.
//
// Invariants: holds exactly the kFree blocks of its segments, each in the bin of its size; a bin's bit is set exactly
// if it has blocks. Guarded by the allocator's lock. Every operation is O(log blocks of a bin) and O(bitmap words).
class FreeIndex {
 public:
  void Insert(Block* block);
  // `block` still has the size and address it was inserted with.
  void Erase(Block* block);

  // The smallest block of at least `size`, of several the one at the lowest address; null if there is none.
  [[nodiscard]] Block* BestFit(Bytes size) const;
  // The size of the largest block; zero if there is none.
  [[nodiscard]] Bytes LargestSize() const;

  [[nodiscard]] size_t count() const { return count_; }
  // The sum of all sizes. O(1).
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] bool Contains(const Block* block) const { return bins_[BinOf(block->size)].Contains(block); }

  // OK, or INTERNAL naming the first inconsistency. O(n).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  // Sizes between two powers of two are divided into so many bins.
  static constexpr int kBinsPerDoubling = 16;
  static constexpr int kBinBits = 4;
  static constexpr size_t kBins = 640;  // the last one is of 512 times 2^38, more than any device's addresses
  static constexpr size_t kWords = kBins / 64;

  // Grows with the size. O(1).
  [[nodiscard]] static size_t BinOf(Bytes size) {
    const uint64_t units = size.count() / 512;
    if (units < kBinsPerDoubling) return units;
    const int shift = 63 - absl::countl_zero(units) - kBinBits;
    return std::min<size_t>((shift << kBinBits) + (units >> shift), kBins - 1);
  }
  // The first bin from this one on that has blocks; kBins if there is none.
  [[nodiscard]] size_t FirstOccupied(size_t bin) const;

  std::array<BlockTree, kBins> bins_;
  std::array<uint64_t, kWords> occupied_{};
  size_t count_ = 0;
  Bytes bytes_;
};

inline void FreeIndex::Insert(Block* block) {
  const size_t bin = BinOf(block->size);
  bins_[bin].Insert(block);
  occupied_[bin / 64] |= uint64_t{1} << (bin % 64);
  bytes_ += block->size;
  ++count_;
}

inline void FreeIndex::Erase(Block* block) {
  const size_t bin = BinOf(block->size);
  bins_[bin].Erase(block);
  if (bins_[bin].empty()) occupied_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
  bytes_ -= block->size;
  --count_;
}

inline size_t FreeIndex::FirstOccupied(size_t bin) const {
  if (bin >= kBins) return kBins;
  size_t word = bin / 64;
  uint64_t bits = occupied_[word] & (~uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == kWords) return kBins;
    bits = occupied_[word];
  }
  return word * 64 + static_cast<size_t>(absl::countr_zero(bits));
}

inline Block* FreeIndex::BestFit(Bytes size) const {
  const size_t bin = BinOf(size);
  // Its own bin has smaller blocks too; any block of a later bin is large enough.
  if (Block* block = bins_[bin].BestFit(size); block != nullptr) return block;
  const size_t larger = FirstOccupied(bin + 1);
  return larger == kBins ? nullptr : bins_[larger].First();
}

}  // namespace expanse

#endif  // EXPANSE_CORE_FREE_INDEX_H_

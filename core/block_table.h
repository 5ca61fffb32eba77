// Blocks by the address at which they begin.

#ifndef EXPANSE_CORE_BLOCK_TABLE_H_
#define EXPANSE_CORE_BLOCK_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/numeric/bits.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/block.h"
#include "vmm/units.h"

namespace expanse {

// A hash table with linear probing. It serves the hot path alone, and so does less than a general one: addresses are
// multiples of 512 that no adversary chooses, so one multiplication hashes them; a block that is taken out leaves no
// mark, because those behind it move up.
//
// Invariants: at most half of the places are taken; between the place that a block's hash names and the one that it has
// no place is free. Guarded by the allocator's lock.
class BlockTable {
 public:
  // The block is not in the table. O(1), amortised: now and then the table doubles.
  void Insert(Block* block) {
    if (2 * (size_ + 1) > places_.size()) Grow();
    Place(block);
    ++size_;
  }
  // Takes out and returns the block that begins there; null if there is none. O(1).
  Block* Take(DeviceAddress begin);
  // Null if there is none. O(1).
  [[nodiscard]] Block* Find(DeviceAddress begin) const {
    if (places_.empty()) return nullptr;
    return places_[PlaceOf(begin)].block;
  }

  [[nodiscard]] size_t size() const { return size_; }
  // In no particular order. O(places).
  void ForEach(absl::FunctionRef<void(Block*)> visit) const {
    for (const Entry& entry : places_) {
      if (entry.block != nullptr) visit(entry.block);
    }
  }

  // OK, or INTERNAL naming a block that is out of place. O(places).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Entry {
    DeviceAddress begin;
    Block* block = nullptr;  // null: the place is free
  };
  static constexpr size_t kFirstSize = 64;

  // Where the search for an address begins. The high bits of the product depend on all bits of the address.
  [[nodiscard]] size_t HomeOf(DeviceAddress begin) const {
    return static_cast<size_t>(begin.value() * 0x9E37'79B9'7F4A'7C15 >> shift_);
  }
  [[nodiscard]] size_t After(size_t place) const { return (place + 1) & (places_.size() - 1); }
  // Where the block is that begins there, or else the free place at which the search for it ends.
  [[nodiscard]] size_t PlaceOf(DeviceAddress begin) const {
    size_t place = HomeOf(begin);
    while (places_[place].block != nullptr && places_[place].begin != begin) place = After(place);
    return place;
  }
  void Place(Block* block) { places_[PlaceOf(block->begin)] = Entry{block->begin, block}; }
  void Grow();

  std::vector<Entry> places_;  // a power of two of them, or none
  int shift_ = 64;             // 64 less the binary logarithm of that
  size_t size_ = 0;
};

inline Block* BlockTable::Take(DeviceAddress begin) {
  if (places_.empty()) return nullptr;
  size_t free = PlaceOf(begin);
  Block* const taken = places_[free].block;
  if (taken == nullptr) return nullptr;
  --size_;
  // Up to the next free place, whatever the search for it passes here moves here.
  for (size_t place = After(free); places_[place].block != nullptr; place = After(place)) {
    const size_t mask = places_.size() - 1;
    const size_t from_home = (place - HomeOf(places_[place].begin)) & mask;
    if (from_home < ((place - free) & mask)) continue;
    places_[free] = places_[place];
    free = place;
  }
  places_[free] = Entry();
  return taken;
}

inline void BlockTable::Grow() {
  std::vector<Entry> before(places_.empty() ? kFirstSize : 2 * places_.size());
  std::swap(before, places_);
  shift_ = 64 - absl::countr_zero(places_.size());
  for (const Entry& entry : before) {
    if (entry.block != nullptr) Place(entry.block);
  }
}

inline absl::Status BlockTable::CheckInvariants() const {
  size_t count = 0;
  for (size_t place = 0; place < places_.size(); ++place) {
    const Entry& entry = places_[place];
    if (entry.block == nullptr) continue;
    ++count;
    if (entry.block->begin != entry.begin || PlaceOf(entry.begin) != place) {
      return absl::InternalError(absl::StrCat("block table: the block at ", ToString(entry.begin), " is out of place"));
    }
  }
  if (count != size_ || 2 * count > places_.size()) {
    return absl::InternalError(absl::StrCat("block table: counts ", size_, " blocks, but ", count, " of ",
                                            places_.size(), " places are taken"));
  }
  return absl::OkStatus();
}

}  // namespace expanse

#endif  // EXPANSE_CORE_BLOCK_TABLE_H_

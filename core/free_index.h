// The free mapped blocks of one segment set, by size and address: where best fit looks.

#ifndef EXPANSE_CORE_FREE_INDEX_H_
#define EXPANSE_CORE_FREE_INDEX_H_

#include <cstddef>

#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "core/block.h"
#include "vmm/units.h"

namespace expanse {

// Invariant: holds exactly the kFree blocks of its segments, each under its present size. Guarded by the allocator's
// lock. Every operation is O(log free blocks).
class FreeIndex {
 public:
  void Insert(Block* block);
  // `block` still has the size and address it was inserted with.
  void Erase(Block* block);

  // The smallest block of at least `size`, of several the one at the lowest address; null if there is none.
  [[nodiscard]] Block* BestFit(Bytes size) const;
  // The size of the largest block; zero if there is none.
  [[nodiscard]] Bytes LargestSize() const;

  [[nodiscard]] size_t count() const { return blocks_.size(); }
  // The sum of all sizes. O(1).
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] bool Contains(const Block* block) const;

  // OK, or which entry contradicts its block. O(n).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Entry {
    Bytes size;
    DeviceAddress begin;
    Block* block;  // not part of the order

    friend bool operator<(const Entry& a, const Entry& b) {
      return a.size != b.size ? a.size < b.size : a.begin < b.begin;
    }
  };

  absl::btree_set<Entry> blocks_;
  Bytes bytes_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_FREE_INDEX_H_

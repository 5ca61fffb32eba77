// Which chunks must stay where they are, and for which ranges.

#ifndef EXPANSE_CORE_PIN_TABLE_H_
#define EXPANSE_CORE_PIN_TABLE_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/chunk_pool.h"
#include "vmm/units.h"

namespace expanse {

// A chunk has one count of pins, whoever holds them: it counts the pinned ranges that the chunk lies behind, each as
// often as it was pinned. While it is above zero the chunk is not unmapped, so that a range has the same chunks behind
// it when it is unpinned as when it was pinned.
//
// Invariant: the counts are the sums over the ranges. Guarded by the allocator's lock.
class PinTable {
 public:
  // Pins the chunks behind `range`. Returns those that were not pinned before. O(chunks + log ranges).
  std::vector<ChunkId> Pin(AddressRange range, std::vector<ChunkId> chunks);
  // Takes back one Pin of exactly this range. Returns the chunks that are not pinned any more. NOT_FOUND, naming the
  // range, if it is not pinned. O(chunks + log ranges).
  [[nodiscard]] absl::StatusOr<std::vector<ChunkId>> Unpin(AddressRange range);

  // O(1).
  [[nodiscard]] bool IsPinned(ChunkId chunk) const {
    return chunk.index() < counts_.size() && counts_[chunk.index()] > 0;
  }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  // OK, or INTERNAL naming the first inconsistency. O(chunks of all ranges).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Pinned {
    std::vector<ChunkId> chunks;
    uint32_t times = 0;
  };

  std::map<std::pair<DeviceAddress, Bytes>, Pinned> ranges_;
  std::vector<uint32_t> counts_;  // by the chunk's index
};

}  // namespace expanse

#endif  // EXPANSE_CORE_PIN_TABLE_H_

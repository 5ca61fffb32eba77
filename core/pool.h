// Private pools: parts of an allocator for tenants that must not be in each other's way.

#ifndef EXPANSE_CORE_POOL_H_
#define EXPANSE_CORE_POOL_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "core/stats.h"
#include "vmm/units.h"

namespace expanse {

// Names a pool of one allocator. Numbers are never given twice. The default one names the pool that always exists and
// that requests without a pool are served from.
class PoolId {
 public:
  constexpr PoolId() = default;
  explicit constexpr PoolId(uint64_t value) : value_(value) {}
  [[nodiscard]] constexpr uint64_t value() const { return value_; }
  [[nodiscard]] constexpr bool is_default() const { return value_ == 0; }

  friend constexpr bool operator==(PoolId a, PoolId b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(PoolId a, PoolId b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(PoolId a, PoolId b) { return a.value_ < b.value_; }
  template <typename H>
  friend H AbslHashValue(H h, PoolId id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& os, PoolId id) { return os << "pool " << id.value_; }

 private:
  uint64_t value_ = 0;
};

struct PoolOptions {
  // For messages; need not be unique.
  std::string name;
  // The most physical memory that may be mapped for the pool, whatever else there is. At least one chunk. None: as much
  // as the allocator may have.
  std::optional<Bytes> limit;
  // The same sequence of requests gets the same addresses, relative to the pool's base: Allocate, Free, RecordUse and
  // OnStreamDestroyed with the same sizes and streams in the same order, of which those that fail do not count. A step
  // that begins as an earlier one did, for instance with no block live, gets the same addresses as that one. They do
  // not depend on what other pools do, on trims, on moves, or on when queued work completes; only on the device memory.
  //
  // The price: blocks of a stream are placed by best fit whether or not memory is there, so that less of what is mapped
  // is reused; a request may wait for work that other streams were given on what lay at its place (named by RecordUse
  // or Free); and the pool reserves eight device memories of addresses of its own, of which each stream that ever uses
  // it takes a part. When they are used up requests fail, after some dozens of streams.
  bool deterministic = false;
};

// Defined as those of Stats, for one pool. Spare chunks belong to no pool.
struct PoolStats {
  Figure live;
  Figure allocated;
  Figure pending;
  Figure reserved;  // chunks mapped in the pool's addresses
  Figure idle;  // those of them that are wholly free and not pinned: they serve other pools too, when memory is wanted
                // there
  Figure pinned;
  // All addresses of a deterministic pool, from its base on. Empty for others, whose addresses come as they are needed.
  AddressRange addresses;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_POOL_H_

// The pools of an allocator.

#ifndef EXPANSE_CORE_POOL_REGISTRY_H_
#define EXPANSE_CORE_POOL_REGISTRY_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pool.h"
#include "core/pool_state.h"

namespace expanse {

// The default pool always exists. A retired pool stays until it has no segments left. Guarded by the allocator's lock.
class PoolRegistry {
 public:
  PoolRegistry();

  PoolState& Create(PoolOptions options);
  // The pool, for anything but freeing. NOT_FOUND if there never was one of that number, FAILED_PRECONDITION if it was
  // retired. O(1).
  [[nodiscard]] absl::StatusOr<PoolState*> Find(PoolId id) const;
  // The same without saying why there is none: null.
  [[nodiscard]] PoolState* FindInUse(PoolId id) const {
    if (id.is_default()) return &default_pool_;
    const auto it = pools_.find(id);
    return it == pools_.end() || it->second->retired() ? nullptr : it->second.get();
  }
  [[nodiscard]] PoolState& default_pool() const { return default_pool_; }

  // The same errors; INVALID_ARGUMENT for the default pool.
  [[nodiscard]] absl::Status Retire(PoolId id);
  // Retired pools that still have segments.
  [[nodiscard]] size_t retired() const { return retired_; }
  // Forgets retired pools without segments, and returns which. O(pools).
  std::vector<PoolId> ForgetEmptyRetired();
  // Forgets a pool that was created last and never used.
  void TakeBack(PoolId id) { pools_.erase(id); }

  // A stream was destroyed. O(pools).
  void Detach(StreamKey key);
  // In the order of creation, retired ones too. O(n log n) in the pools.
  [[nodiscard]] std::vector<PoolState*> Pools() const;
  // Those of all pools. O(heaps).
  [[nodiscard]] std::vector<StreamHeap*> Heaps() const;

 private:
  absl::flat_hash_map<PoolId, std::unique_ptr<PoolState>> pools_;
  uint64_t next_ = 0;
  size_t retired_ = 0;
  PoolState& default_pool_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_POOL_REGISTRY_H_

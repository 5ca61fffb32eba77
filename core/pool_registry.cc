#include "core/pool_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse {

namespace {

PoolOptions Default() {
  PoolOptions options;
  options.name = "default";
  return options;
}

}  // namespace

PoolRegistry::PoolRegistry() : default_pool_(Create(Default())) {}

PoolState& PoolRegistry::Create(PoolOptions options) {
  const PoolId id(next_++);
  return *pools_.emplace(id, std::make_unique<PoolState>(id, std::move(options))).first->second;
}

absl::StatusOr<PoolState*> PoolRegistry::Find(PoolId id) const {
  if (PoolState* pool = FindInUse(id); pool != nullptr) return pool;
  if (id.value() >= next_) {
    return absl::NotFoundError(
        absl::StrCat("there is no pool ", id.value(), "; the last one that was created is pool ", next_ - 1));
  }
  const auto it = pools_.find(id);
  const std::string name = it == pools_.end() ? absl::StrCat("pool ", id.value()) : it->second->Name();
  return absl::FailedPreconditionError(absl::StrCat(name, " was retired, expected one that is in use"));
}

absl::Status PoolRegistry::Retire(PoolId id) {
  if (id.is_default()) return absl::InvalidArgumentError("pool 0, the default pool, cannot be retired");
  const absl::StatusOr<PoolState*> pool = Find(id);
  if (!pool.ok()) return pool.status();
  (*pool)->Retire();
  ++retired_;
  return absl::OkStatus();
}

std::vector<PoolId> PoolRegistry::ForgetEmptyRetired() {
  std::vector<PoolId> forgotten;
  if (retired_ == 0) return forgotten;
  for (auto it = pools_.begin(); it != pools_.end();) {
    const auto here = it++;
    if (!here->second->retired() || here->second->InRequest() || here->second->HasSegments()) continue;
    forgotten.push_back(here->first);
    pools_.erase(here);
    --retired_;
  }
  return forgotten;
}

void PoolRegistry::Detach(StreamKey key) {
  for (const auto& [id, pool] : pools_) pool->Detach(key);
}

std::vector<PoolState*> PoolRegistry::Pools() const {
  std::vector<PoolState*> pools;
  for (const auto& [id, pool] : pools_) pools.push_back(pool.get());
  std::sort(pools.begin(), pools.end(), [](const PoolState* a, const PoolState* b) { return a->id() < b->id(); });
  return pools;
}

std::vector<StreamHeap*> PoolRegistry::Heaps() const {
  std::vector<StreamHeap*> heaps;
  for (const PoolState* pool : Pools()) {
    for (StreamHeap* heap : pool->Heaps()) heaps.push_back(heap);
  }
  return heaps;
}

}  // namespace expanse

#include "core/pool_state.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace expanse {

std::string PoolState::Name() const {
  return options_.name.empty() ? absl::StrCat("pool ", id_.value())
                               : absl::StrCat("pool ", id_.value(), " (", options_.name, ")");
}

void PoolState::FindLatest(StreamKey key) {
  const auto it = heaps_.find(key);
  latest_ = it == heaps_.end() ? nullptr : it->second.get();
  latest_key_ = key;
}

StreamHeap& PoolState::Add(std::shared_ptr<StreamState> stream) {
  const StreamKey key = stream->key();
  std::unique_ptr<StreamHeap>& heap = heaps_[key];
  heap = std::make_unique<StreamHeap>(*this, options_.deterministic, std::move(stream));
  return *heap;
}

void PoolState::Detach(StreamKey key) {
  const auto it = heaps_.find(key);
  if (it == heaps_.end()) return;
  latest_ = nullptr;
  detached_.push_back(std::move(it->second));
  heaps_.erase(it);
}

void PoolState::ForgetEmptyDetached() {
  const auto empty = [](const std::unique_ptr<StreamHeap>& heap) { return !heap->HasSegments(); };
  detached_.erase(std::remove_if(detached_.begin(), detached_.end(), empty), detached_.end());
}

std::vector<StreamHeap*> PoolState::Heaps() const {
  std::vector<StreamHeap*> heaps;
  for (const std::unique_ptr<StreamHeap>& heap : detached_) heaps.push_back(heap.get());
  for (const auto& [key, heap] : heaps_) heaps.push_back(heap.get());
  return heaps;
}

bool PoolState::HasSegments() const {
  const std::vector<StreamHeap*> heaps = Heaps();
  return std::any_of(heaps.begin(), heaps.end(), [](const StreamHeap* heap) { return heap->HasSegments(); });
}

Bytes PoolState::Room() const {
  if (!options_.limit) return Bytes(std::numeric_limits<uint64_t>::max());
  const Bytes reserved = figures_.reserved.current();
  return *options_.limit > reserved ? *options_.limit - reserved : Bytes();
}

}  // namespace expanse

#include "core/stream_heap.h"

#include <algorithm>
#include <utility>

namespace expanse {

StreamHeap* StreamRegistry::Find(StreamKey key) const {
  const auto it = heaps_.find(key);
  return it == heaps_.end() ? nullptr : it->second.get();
}

StreamHeap& StreamRegistry::FindOrAdd(StreamKey key) {
  std::unique_ptr<StreamHeap>& heap = heaps_[key];
  if (heap == nullptr) heap = std::make_unique<StreamHeap>(key);
  return *heap;
}

void StreamRegistry::Retire(StreamKey key) {
  const auto it = heaps_.find(key);
  retired_.push_back(std::move(it->second));
  heaps_.erase(it);
}

void StreamRegistry::ForgetEmptyRetired() {
  retired_.erase(std::remove_if(retired_.begin(), retired_.end(),
                                [](const std::unique_ptr<StreamHeap>& heap) {
                                  return !heap->HasSegments() && !heap->stream()->needs_fence();
                                }),
                 retired_.end());
}

std::vector<StreamHeap*> StreamRegistry::Heaps() const {
  std::vector<StreamHeap*> heaps;
  for (const auto& [key, heap] : heaps_) heaps.push_back(heap.get());
  for (const std::unique_ptr<StreamHeap>& heap : retired_) heaps.push_back(heap.get());
  return heaps;
}

}  // namespace expanse

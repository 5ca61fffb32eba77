// What the allocator knows about one pool.

#ifndef EXPANSE_CORE_POOL_STATE_H_
#define EXPANSE_CORE_POOL_STATE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/pool.h"
#include "core/pool_figures.h"
#include "core/stream_heap.h"
#include "core/stream_state.h"

namespace expanse {

// A pool has its own addresses, a heap for each stream that it was asked for memory on, and its own limit. Chunks are
// lent to it by the supply that all pools share: those that are idle here serve growth elsewhere.
//
// After Retire it is only waited for that its blocks are freed; it is forgotten when it has no segments left.
// Guarded by the allocator's lock.
class PoolState {
 public:
  PoolState(PoolId id, PoolOptions options) : id_(id), options_(std::move(options)) {}
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  [[nodiscard]] PoolId id() const { return id_; }
  [[nodiscard]] const PoolOptions& options() const { return options_; }
  // For messages: "pool 3 (embeddings)".
  [[nodiscard]] std::string Name() const;

  // Null if the pool has no memory of the stream. O(1), and quick for the stream that was found last.
  [[nodiscard]] StreamHeap* Find(StreamKey key) {
    if (latest_ == nullptr || !(latest_key_ == key)) FindLatest(key);
    return latest_;
  }
  StreamHeap& Add(std::shared_ptr<StreamState> stream);
  // The stream was destroyed: its heap stays, without the handle, until it has no segments.
  void Detach(StreamKey key);
  // Forgets heaps of destroyed streams that have no segments. O(such heaps).
  void ForgetEmptyDetached();
  // All heaps, those of destroyed streams too. O(heaps).
  [[nodiscard]] std::vector<StreamHeap*> Heaps() const;
  [[nodiscard]] bool HasSegments() const;

  void Retire() { retired_ = true; }
  [[nodiscard]] bool retired() const { return retired_; }
  // Requests that hold on to the pool while they wait with the lock released.
  void BeginRequest() { ++requests_; }
  void EndRequest() { --requests_; }
  [[nodiscard]] bool InRequest() const { return requests_ > 0; }

  [[nodiscard]] PoolFigures& figures() { return figures_; }
  [[nodiscard]] const PoolFigures& figures() const { return figures_; }
  // How much more may be mapped for the pool.
  [[nodiscard]] Bytes Room() const;

 private:
  void FindLatest(StreamKey key);

  const PoolId id_;
  const PoolOptions options_;
  PoolFigures figures_;  // segments refer to it
  absl::flat_hash_map<StreamKey, std::unique_ptr<StreamHeap>> heaps_;
  std::vector<std::unique_ptr<StreamHeap>> detached_;
  // What Find found last; null if nothing is remembered.
  StreamKey latest_key_;
  StreamHeap* latest_ = nullptr;
  bool retired_ = false;
  int requests_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_POOL_STATE_H_

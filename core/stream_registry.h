// The streams that the allocator has been told of.

#ifndef EXPANSE_CORE_STREAM_REGISTRY_H_
#define EXPANSE_CORE_STREAM_REGISTRY_H_

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/stream_state.h"

namespace expanse {

// One state a stream, whatever pools have memory of it. The state of a destroyed stream stays, without its handle, for
// as long as blocks, heaps or tickets refer to it: until then a fence has to find it.
// Guarded by the allocator's lock.
class StreamRegistry {
 public:
  // Null if the stream is not known. O(1).
  [[nodiscard]] StreamState* Find(StreamKey key) const;
  [[nodiscard]] const std::shared_ptr<StreamState>& FindOrAdd(StreamKey key);
  // The handle names no stream of ours any more.
  void Retire(StreamKey key);
  // Forgets retired streams that nobody refers to. O(retired streams).
  void ForgetUnusedRetired();

  // All of them, retired ones too. O(streams).
  [[nodiscard]] std::vector<std::shared_ptr<StreamState>> Streams() const;
  [[nodiscard]] size_t retired() const { return retired_.size(); }

 private:
  absl::flat_hash_map<StreamKey, std::shared_ptr<StreamState>> streams_;
  std::vector<std::shared_ptr<StreamState>> retired_;
  uint32_t last_number_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_STREAM_REGISTRY_H_

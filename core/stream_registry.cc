#include "core/stream_registry.h"

#include <algorithm>
#include <utility>

namespace expanse {

StreamState* StreamRegistry::Find(StreamKey key) const {
  const auto it = streams_.find(key);
  return it == streams_.end() ? nullptr : it->second.get();
}

const std::shared_ptr<StreamState>& StreamRegistry::FindOrAdd(StreamKey key) {
  std::shared_ptr<StreamState>& stream = streams_[key];
  if (stream == nullptr) stream = std::make_shared<StreamState>(key, key == StreamKey() ? 0 : ++last_number_);
  return stream;
}

void StreamRegistry::Retire(StreamKey key) {
  const auto it = streams_.find(key);
  retired_.push_back(std::move(it->second));
  streams_.erase(it);
}

void StreamRegistry::ForgetUnusedRetired() {
  const auto unused = [](const std::shared_ptr<StreamState>& stream) { return stream.use_count() == 1; };
  retired_.erase(std::remove_if(retired_.begin(), retired_.end(), unused), retired_.end());
}

std::vector<std::shared_ptr<StreamState>> StreamRegistry::Streams() const {
  std::vector<std::shared_ptr<StreamState>> streams = retired_;
  for (const auto& [key, stream] : streams_) streams.push_back(stream);
  return streams;
}

}  // namespace expanse

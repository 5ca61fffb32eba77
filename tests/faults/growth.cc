// The scenario of growth: several streams allocate, share, free, trim and run out of memory.

#include <chrono>
#include <utility>

#include "gtest/gtest.h"
#include "tests/faults/scenario.h"

namespace expanse::faults {

using std::chrono::microseconds;

void Scenario::Allocate(char name, Bytes size, int stream, std::optional<char> pool) {
  const std::optional<PoolId> from = Find(pool);
  if (!from) return;
  Step("allocate", absl::StatusCode::kOk, [&]() -> absl::Status {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, StreamHandle(streams_[stream]), *from);
    if (!address.ok()) return address.status();
    const Block block{*address, size, ++seed_};
    live_[name] = block;
    Write(block);
    return absl::OkStatus();
  });
}

void Scenario::AllocateInVain(Bytes size, int stream, std::optional<char> pool) {
  const std::optional<PoolId> from = Find(pool);
  if (!from) return;
  Step("allocate more than there is", absl::StatusCode::kResourceExhausted,
       [&] { return allocator_->Allocate(size, StreamHandle(streams_[stream]), *from).status(); });
}

void Scenario::Free(char name, std::optional<int> stream) {
  const auto it = live_.find(name);
  if (it == live_.end()) return;  // it could not be had, in a broken context
  const Block block = it->second;
  live_.erase(it);
  Step("free", absl::StatusCode::kOk, [&] {
    const absl::Status status =
        stream ? allocator_->Free(block.begin, StreamHandle(streams_[*stream])) : allocator_->Free(block.begin);
    EXPECT_EQ(status, absl::OkStatus()) << "whatever the driver refuses";
    return status;
  });
}

void Scenario::RecordUse(char name, int stream) {
  const auto it = live_.find(name);
  if (it == live_.end()) return;
  Step("record use", absl::StatusCode::kOk,
       [&] { return allocator_->RecordUse(it->second.begin, StreamHandle(streams_[stream])); });
}

void Scenario::Trim(Bytes target) {
  Step("trim", absl::StatusCode::kOk, [&] { return allocator_->Trim(target).status(); });
}

void Scenario::DestroyStream(int stream) {
  Step("destroy a stream", absl::StatusCode::kOk,
       [&] { return allocator_->OnStreamDestroyed(StreamHandle(streams_[stream])); });
  if (sim_->driver().stream_destroy(streams_[stream]) == abi::kSuccess) streams_[stream] = nullptr;
}

void Scenario::Work(char name, int stream, bool writes) {
  const auto it = live_.find(name);
  if (it == live_.end() || sticky_) return;
  const sim::Access access{{it->second.begin, it->second.size}, writes};
  EXPECT_EQ(sim_->Launch(StreamHandle(streams_[stream]), microseconds(100), {access}), abi::kSuccess);
}

void Scenario::RunGrowth() {
  // Cold growth, in both size classes.
  Allocate('a', MiB(12), 0);
  Allocate('b', KiB(700), 0);
  Allocate('c', MiB(20), 1);
  Allocate('d', MiB(9) + Bytes(512), 1);
  Allocate('e', MiB(10), 2);
  Allocate('f', MiB(16), 0);
  Allocate('g', MiB(6), 1);
  Work('a', 0, false);
  Work('a', 1, false);
  Work('c', 1, false);
  Work('c', 2, false);
  Work('e', 2, true);
  Work('f', 0, true);
  // Frees that other streams hold up.
  RecordUse('c', 2);
  Free('c');
  Free('a', 1);
  // At the limit: what is pending must be waited for and moved out of two streams' segments.
  Allocate('h', MiB(30), 2);
  Work('h', 2, true);
  // Frees on the block's own stream, whose work is not complete; the next request is larger than what they leave there.
  Work('d', 1, true);
  Free('d');
  Free('f');
  Allocate('i', MiB(34), 0);
  Work('i', 0, true);
  Work('g', 1, true);
  // The memory of a stream that goes away serves others.
  Free('h', 1);
  DestroyStream(1);
  Trim(MiB(60));
  Free('g');
  Allocate('j', MiB(40), 2);
  AllocateInVain(MiB(90), 0);
  Work('j', 2, true);
  Free('j');
  AllocateInVain(MiB(51), 0);  // which is known only after waiting
  Free('i');
  Trim(MiB(30));
  Trim(Bytes());
  // Growth after a trim.
  Allocate('k', MiB(44), 0);
  Work('k', 0, true);
  Free('k', 2);
  Free('e');
  Allocate('l', MiB(70), 2);
  Free('b');
  Free('l');
}

}  // namespace expanse::faults

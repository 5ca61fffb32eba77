#include "bench/allocators/deferred_frees.h"

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "vmm/driver_call.h"

namespace expanse::bench {

DeferredFrees::~DeferredFrees() {
  for (Queue& queue : queues_) {
    for (Entry& entry : queue.entries) spare_.push_back(entry.event);
  }
  // There is nobody to tell that the driver refuses.
  for (abi::Event event : spare_) (void)driver_.event_destroy(event);
}

absl::Status DeferredFrees::Defer(Block& block) {
  absl::InlinedVector<abi::Event, 4> recorded;
  for (StreamHandle stream : block.uses) {
    absl::StatusOr<abi::Event> event = TakeEvent();
    absl::Status status = event.status();
    if (status.ok()) {
      recorded.push_back(*event);
      status = CallStatus(driver_, driver_.event_record(*event, static_cast<abi::Stream>(stream.raw())),
                          EntryPoint::event_record, "at the free of 0x", absl::Hex(block.address.value()));
    }
    if (!status.ok()) {
      spare_.insert(spare_.end(), recorded.begin(), recorded.end());
      return status;
    }
  }
  for (size_t i = 0; i < recorded.size(); ++i) QueueOf(block.uses[i]).entries.push_back({recorded[i], &block});
  block.events = static_cast<uint32_t>(recorded.size());
  queued_ += recorded.size();
  block.uses.clear();
  return absl::OkStatus();
}

absl::Status DeferredFrees::Collect(Done done) {
  for (Queue& queue : queues_) {
    while (!queue.entries.empty()) {
      const abi::Result r = driver_.event_query(queue.entries.front().event);
      if (r == abi::kNotReady) break;
      absl::Status status = CallStatus(driver_, r, EntryPoint::event_query, "for 0x",
                                       absl::Hex(queue.entries.front().block->address.value()));
      if (!status.ok()) return status;
      Pop(queue, done);
    }
  }
  return absl::OkStatus();
}

absl::Status DeferredFrees::WaitForAll(Done done) {
  for (Queue& queue : queues_) {
    while (!queue.entries.empty()) {
      const Entry& front = queue.entries.front();
      absl::Status status = CallStatus(driver_, driver_.event_synchronize(front.event), EntryPoint::event_synchronize,
                                       "for 0x", absl::Hex(front.block->address.value()));
      if (!status.ok()) return status;
      Pop(queue, done);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<abi::Event> DeferredFrees::TakeEvent() {
  abi::Event event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
    return event;
  }
  absl::Status status = CallStatus(driver_, driver_.event_create(&event, abi::kEventDisableTiming),
                                   EntryPoint::event_create, "flags=CU_EVENT_DISABLE_TIMING");
  if (!status.ok()) return status;
  return event;
}

DeferredFrees::Queue& DeferredFrees::QueueOf(StreamHandle stream) {
  for (Queue& queue : queues_) {
    if (queue.stream == stream) return queue;
  }
  return queues_.emplace_back(Queue{stream, {}});
}

void DeferredFrees::Pop(Queue& queue, Done done) {
  const Entry entry = queue.entries.front();
  queue.entries.pop_front();
  --queued_;
  spare_.push_back(entry.event);
  if (--entry.block->events == 0) done(*entry.block);
}

}  // namespace expanse::bench

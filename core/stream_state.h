// How far one stream has come, as far as the host knows.

#ifndef EXPANSE_CORE_STREAM_STATE_H_
#define EXPANSE_CORE_STREAM_STATE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/event.h"
#include "vmm/units.h"

namespace expanse {

// Names a stream for as long as it lives. The legacy default stream has two handles and one key; the per-thread default
// stream has one handle and a key for every thread.
struct StreamKey {
  void* raw = nullptr;
  uint64_t thread = 0;  // 0 but for per-thread default streams; never used again after a thread has ended

  // The key of `stream` as the calling thread means it. O(1).
  [[nodiscard]] static StreamKey Of(StreamHandle stream) {
    // cuda.h: CU_STREAM_LEGACY, 1, is another name for the null stream.
    if (reinterpret_cast<uintptr_t>(stream.raw()) <= 1) return StreamKey{};
    return stream == StreamHandle::PerThread() ? OfThisThread() : StreamKey{stream.raw(), 0};
  }
  // The key of the calling thread's own default stream.
  [[nodiscard]] static StreamKey OfThisThread();
  [[nodiscard]] bool is_per_thread() const { return thread != 0; }
  // The legacy one or a per-thread one.
  [[nodiscard]] bool is_default() const { return raw == nullptr || is_per_thread(); }

  friend bool operator==(StreamKey a, StreamKey b) { return a.raw == b.raw && a.thread == b.thread; }
  template <typename H>
  friend H AbslHashValue(H h, StreamKey key) {
    return H::combine(std::move(h), key.raw, key.thread);
  }
};

// For messages: "the legacy default stream", "stream 0x55d0c0de", "the default stream of thread 3".
[[nodiscard]] std::string ToString(StreamKey key);

// Divides what a stream was given into epochs, numbered from 1. Memory freed on the stream belongs to the epoch that is
// open at that moment. Recording an event closes the epoch; once the event is complete, so is the epoch with all before
// it, and the device is done with the memory that was freed in them.
//
// Recording is lazy: nothing is recorded until somebody needs to know. After Detach the last epoch is closed for good,
// and the driver may give the handle to another stream.
//
// A program may forget to say that a stream is gone. Where the driver has cuStreamGetId, Close notices: an event would
// then stand for another stream's work. From that epoch on nothing counts as complete before the whole context was
// synchronised; the stream that has the handle now goes on with the memory and with epochs of its own.
//
// Invariants: completed < open; the closed epochs that are not complete have one event each, in order, but for those
// that wait for a fence, which need not have one.
// Guarded by the allocator's lock, except that an event from EventOf may be waited for without it.
class StreamState {
 public:
  explicit StreamState(StreamKey key, uint32_t number = 0) : key_(key), number_(number) {}
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  [[nodiscard]] StreamKey key() const { return key_; }
  // Tells streams apart for good, where handles come back. 0 is the legacy default stream.
  [[nodiscard]] uint32_t number() const { return number_; }
  // The epoch that memory freed now belongs to. After Detach, the last one, which is closed.
  [[nodiscard]] uint64_t current_epoch() const { return detached_ ? open_ - 1 : open_; }
  [[nodiscard]] bool IsComplete(uint64_t epoch) const { return epoch <= completed_; }
  [[nodiscard]] bool IsOpen(uint64_t epoch) const { return epoch >= open_; }
  [[nodiscard]] bool detached() const { return detached_; }

  // Remembers which stream the handle names, as Close compares it. Does nothing after the first time, for default
  // streams and where the driver cannot tell. One driver call and those of entering the context; never waits.
  void Identify(const Device& device);

  // Closes the open epoch by recording an event, or without one if the stream is gone, and returns the epoch that was
  // closed. After a failure it is still open. Two or three driver calls and those of entering the context; never waits.
  // The stream must not be detached.
  [[nodiscard]] absl::StatusOr<uint64_t> Close(EventPool& events, const Device& device);

  // Whole chunks that fell idle in the open epoch; counted by whoever frees.
  void AddIdle(uint64_t chunks) { idle_in_epoch_ += chunks; }
  [[nodiscard]] uint64_t idle_in_epoch() const { return idle_in_epoch_; }

  // Closes the open epoch for good. When no event can be recorded, what it covers counts as complete only once the
  // whole context was synchronised (needs_fence), and the failure is returned.
  absl::Status Detach(EventPool& events, const Device& device);
  // Whether there are epochs that count as complete only once the context was synchronised.
  [[nodiscard]] bool needs_fence() const { return fence_last_ != 0; }

  // Asks the driver which closed epochs are complete: one call for each that is, and one for the first that is not.
  // An error of the driver is returned, and nothing more is assumed complete.
  absl::Status Poll(EventPool& events);
  // The event that covers an epoch that is closed and not complete. It stays valid while held, whatever happens to the
  // epoch meanwhile. Null if a fence is needed.
  [[nodiscard]] std::shared_ptr<const Event> EventOf(uint64_t epoch) const;
  // The caller saw everything complete that was queued in the context before `epoch`, which is closed, was closed.
  void CompleteUpTo(uint64_t epoch, EventPool& events);
  // The last epoch that is closed; 0 if none is.
  [[nodiscard]] uint64_t last_closed() const { return open_ - 1; }

  // OK, or INTERNAL naming the inconsistency.
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Closed {
    uint64_t epoch;
    std::shared_ptr<Event> event;
  };
  // Whether the handle names the stream that it named when that was first asked. True if nobody can tell.
  absl::StatusOr<bool> IsSameStream(const ScopedContext& context);
  // Whether a handle that the driver refused to record on names no stream any more. Asked only where there are no ids.
  [[nodiscard]] bool IsGone(const Device& device) const;
  void CloseWithoutEvent();
  void RetireFirst(EventPool& events);

  const StreamKey key_;
  const uint32_t number_;
  bool identified_ = false;     // the driver was asked for the id
  std::optional<uint64_t> id_;  // never another stream's, while the process lives
  uint64_t open_ = 1;
  uint64_t completed_ = 0;
  std::deque<Closed> closed_;
  uint64_t idle_in_epoch_ = 0;
  bool detached_ = false;
  // The epochs that wait for a fence: all from the first on, of which the last one has no event. 0: none.
  uint64_t fence_first_ = 0;
  uint64_t fence_last_ = 0;
};

// What must be complete before memory may be used again.
struct Ticket {
  std::shared_ptr<StreamState> stream;
  uint64_t epoch = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_STREAM_STATE_H_

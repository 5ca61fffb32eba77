// Virtual time: streams, events and queued work on a clock that moves only when it is told to.

#ifndef EXPANSE_VMM_SIM_TIMELINE_H_
#define EXPANSE_VMM_SIM_TIMELINE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "vmm/abi.h"
#include "vmm/sim/clock_slots.h"
#include "vmm/sim/handle_values.h"
#include "vmm/sim/interval_map.h"
#include "vmm/sim/race_detector.h"
#include "vmm/sim/vector_clock.h"
#include "vmm/units.h"

namespace expanse::sim {

// Virtual time since the simulator was made (the same alias as in simulator.h).
using VirtualTime = std::chrono::nanoseconds;

// Memory that a piece of work touches: the addresses it uses and the physical bytes they stand for, in any order.
struct WorkAccess {
  AddressRange range;
  bool writes = true;
  std::vector<PhysicalExtent> extents;
};

// What became of work that was queued.
struct QueuedWork {
  WorkRef work;
  VirtualTime start{};
  VirtualTime end{};
  std::vector<Race> races;  // hazards; empty is well
};

// Work that is not complete and uses some addresses.
struct PendingWork {
  WorkRef work;
  VirtualTime end{};
  AddressRange range;  // what of the range that was asked about it uses

  [[nodiscard]] std::string ToString() const;  // "work 12 (kernel) on stream 3, which uses ... until 15000 ns"
};

// The order of things on a simulated machine.
//
// When a piece of work is queued, all that it waits for is known: the stream's earlier work, the events the stream was
// told to wait for, the legacy stream's rules. So its start and its end are computed there and then, and nothing runs
// in the background. Work is complete when the clock has reached its end.
//
// Two orders are kept apart. The clock says what *is* complete: an unmap looks at that. Happens-before, kept by vector
// clocks, says what *must* be complete whatever the timing: races are found with that, so that a program cannot pass by
// luck. Work comes before other work through a stream, through an event, or through the host: what the host has waited
// for, or has been told is complete, comes before all that is queued later. The host's threads count as one.
//
// Streams. The legacy stream of a context first waits for all its blocking streams, and they wait for it, at every
// action: work, record, wait (CUDA Runtime API, "Stream synchronization behavior"). Waiting *for* the legacy stream
// covers its own work alone: whether it covers the blocking streams is not documented, and less is safer. A per-thread
// default stream is a blocking stream of its (context, thread), made at first use. Handle values of destroyed streams
// and events are given out again, the most recent first, as a driver's heap would; stream ids never.
//
// Functions that take a StreamId, an Event or a Context require a live one; DestroyStream, DestroyEvent and FindStream
// alone take any value.
//
// Not synchronised: the simulator's one mutex guards it. Queueing is O(streams + log n + pieces of history met), as is
// everything else that is not said to cost more.
class Timeline {
 public:
  Timeline();
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // --- The clock ----------------------------------------------------------------------------------------------------
  [[nodiscard]] VirtualTime now() const { return now_; }
  // Stops at the largest time there is. `by` must not be negative.
  void Advance(VirtualTime by);
  // Whether all queued work is complete.
  [[nodiscard]] bool Idle() const { return latest_end_ <= now_; }
  // What callers were held by the waits below, in all.
  [[nodiscard]] VirtualTime stalled() const { return stalled_; }
  void ResetStalled() { stalled_ = {}; }

  // --- Contexts -----------------------------------------------------------------------------------------------------
  void AddContext(abi::Context context, DeviceOrdinal device);
  [[nodiscard]] bool HasContext(abi::Context context) const { return contexts_.contains(context); }
  // Waits for the context's work, then drops its streams and events. Returns how long the caller was held.
  VirtualTime RemoveContext(abi::Context context);

  // --- Streams ------------------------------------------------------------------------------------------------------
  struct StreamInfo {
    abi::Context context = nullptr;
    DeviceOrdinal device;
    bool legacy = false;
    bool blocking = true;  // ordered with the legacy stream; true for the legacy and the per-thread streams
  };
  [[nodiscard]] abi::Stream CreateStream(abi::Context context, bool blocking);
  // False if there is no such stream or it is a default stream. Its queued work still runs.
  [[nodiscard]] bool DestroyStream(abi::Stream stream);
  // The stream that a handle means when `thread` uses it with `current` as its current context; 0 and 1 are the legacy
  // stream, 2 the per-thread stream. Empty for a value that is no stream, and for a default stream without a context.
  [[nodiscard]] std::optional<StreamId> FindStream(abi::Stream stream, abi::Context current, std::thread::id thread);
  [[nodiscard]] StreamInfo Info(StreamId stream) const;
  // Streams made by CreateStream and not destroyed.
  [[nodiscard]] uint64_t stream_count() const { return streams_by_handle_.size(); }
  // Whether all the stream's work is complete. If so the host knows it from now on.
  [[nodiscard]] bool QueryStream(StreamId stream);
  // Moves the clock to when the stream's work is complete. Returns how long the caller was held.
  VirtualTime SynchronizeStream(StreamId stream);
  // The same for all streams of the context, destroyed ones too.
  VirtualTime SynchronizeContext(abi::Context context);

  // --- Events -------------------------------------------------------------------------------------------------------
  [[nodiscard]] abi::Event CreateEvent(abi::Context context);
  // False if there is no such event. Streams that wait for it go on waiting.
  [[nodiscard]] bool DestroyEvent(abi::Event event);
  // The event's context; empty if there is no such event.
  [[nodiscard]] std::optional<abi::Context> FindEvent(abi::Event event) const;
  [[nodiscard]] uint64_t event_count() const { return events_.size(); }
  // The event is complete when the stream's work up to here is; an earlier record is forgotten.
  void Record(abi::Event event, StreamId stream);
  // The stream's later work waits for the event as last recorded by now; not at all if it never was.
  void Wait(StreamId stream, abi::Event event);
  // Whether the event is complete, as an unrecorded one is. If so the host knows it from now on.
  [[nodiscard]] bool QueryEvent(abi::Event event);
  VirtualTime SynchronizeEvent(abi::Event event);

  // --- Work ---------------------------------------------------------------------------------------------------------
  // Queues work that takes `duration`, from when all it waits for is complete. `what` is a literal.
  QueuedWork Enqueue(StreamId stream, VirtualTime duration, absl::Span<const WorkAccess> accesses, const char* what);
  // The same for work that ends at `end`, or as soon as it starts if that is later.
  QueuedWork EnqueueUntil(StreamId stream, VirtualTime end, absl::Span<const WorkAccess> accesses, const char* what);

  // The work on `range` that is not complete: unmapping the range now would pull memory from under it. Of several
  // pieces of work on the same bytes it is the one that ends last. Each once, with the first bytes that it has for
  // itself, in address order. O(log n + pieces met * work found).
  [[nodiscard]] std::vector<PendingWork> PendingOn(AddressRange range) const;
  // The range was unmapped: nothing is pending on these addresses any more.
  void ForgetRange(AddressRange range);
  // The physical memory is gone: nothing can race on it any more.
  void ForgetAllocation(AllocationId allocation);

  // How much is remembered, for tests: intervals with incomplete work, intervals that could race, clock slots.
  struct Footprint {
    size_t pending_intervals = 0;
    size_t race_intervals = 0;
    size_t slots = 0;
  };
  [[nodiscard]] Footprint footprint() const;
  // OK, or what is inconsistent. O(everything).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  // A place in happens-before and in time: all that comes before it is complete at `end`.
  struct Point {
    VirtualTime end{};
    VectorClock clock;
    void Join(const Point& other);
  };
  struct Stream {
    StreamInfo info;
    abi::Stream handle = nullptr;  // null for a default stream
    uint32_t slot = 0;
    Point last;  // after all that was queued
    // The host has waited for the context since the last action here, so waiting again may pass over this stream.
    bool host_knows_last = false;
  };
  struct Context {
    DeviceOrdinal device;
    StreamId legacy{};
    std::vector<StreamId> streams;  // the legacy stream too
    absl::flat_hash_map<std::thread::id, StreamId> per_thread;
    Point gone_blocking;  // what destroyed blocking streams left running
    Point gone;           // what all destroyed streams left running
  };
  struct Event {
    abi::Context context = nullptr;
    bool recorded = false;
    Point point;
  };
  struct Use {
    WorkRef work;
    VirtualTime end{};
    friend bool operator==(const Use& a, const Use& b) { return a.work == b.work && a.end == b.end; }
  };

  StreamId NewStream(abi::Context context, bool legacy, bool blocking, abi::Stream handle);
  void DropStream(StreamId id);
  // Makes `stream.last` come after all that an action on the stream waits for implicitly.
  void BeginAction(Stream& stream);
  QueuedWork Queue(StreamId stream, VirtualTime duration, VirtualTime until, absl::Span<const WorkAccess> accesses,
                   const char* what);
  void NotePending(const AddressRange& range, const Use& use);
  // The host learns that everything before `point` is complete.
  void HostSees(const Point& point);
  VirtualTime WaitFor(const Point& point);

  VirtualTime now_{};
  VirtualTime latest_end_{};
  VirtualTime stalled_{};
  VectorClock host_;
  uint64_t work_count_ = 0;
  uint64_t last_stream_id_ = 0;

  absl::flat_hash_map<abi::Context, Context> contexts_;
  absl::flat_hash_map<StreamId, std::unique_ptr<Stream>> streams_;
  absl::flat_hash_map<abi::Stream, StreamId> streams_by_handle_;
  absl::flat_hash_map<abi::Event, Event> events_;

  HandleValues<abi::Stream> stream_handles_{1};
  HandleValues<abi::Event> event_handles_{2};
  ClockSlots slots_;

  IntervalMap<Use> pending_;  // By address; may hold complete work until swept.
  size_t sweep_pending_at_ = 64;
  RaceDetector races_;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_TIMELINE_H_

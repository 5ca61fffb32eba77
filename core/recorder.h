// Remembers what a program asked for lately, so that it can be replayed.

#ifndef EXPANSE_CORE_RECORDER_H_
#define EXPANSE_CORE_RECORDER_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/snapshot.h"
#include "vmm/units.h"

namespace expanse {

struct RecordedEvent {
  using Kind = SnapshotEventKind;

  // Of the block or range. kMark: the number of its label, counted from the first ever. kOutOfMemory: the bytes that
  // the device had free, 0 where it did not say.
  uint64_t address = 0;
  Bytes bytes;          // asked for; kMap and kUnmap: of the range
  uint32_t stream = 0;  // the block's own, numbered as the allocator met them; 0 is the legacy default stream
  uint32_t other = 0;   // kFree, kFreePending: the stream of the last use; kUse: the one that uses it
  Kind kind = Kind::kAllocate;
};

static_assert(sizeof(RecordedEvent) == 32, "options.h and docs/statistics.md say so");

// A ring of the latest events, of a size fixed at the start. Adding one writes one record: it allocates nothing, but
// for the label of a mark, and reads the clock once in kEventsPerTime events.
//
// Invariants: labels are those of the marks in the ring, in order; times are those of the groups of events that the
// ring holds part of. Guarded by the allocator's lock.
class Recorder {
 public:
  // Reading the clock takes about as long as a tenth of an allocation; once in so many events it is not seen.
  static constexpr uint64_t kEventsPerTime = 256;
  static constexpr size_t kLongestLabel = 4096;

  // Keeps the latest `capacity` events; with 0, none.
  explicit Recorder(uint64_t capacity) : events_(capacity), times_(capacity / kEventsPerTime + 2) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] bool on() const { return !events_.empty(); }
  // Does nothing where the recorder is off. Not for marks. O(1).
  void Add(const RecordedEvent& event) {
    if (on()) Push(event);
  }
  // INVALID_ARGUMENT for a label that the trace format cannot hold: it takes 1 to kLongestLabel bytes other than
  // commas, '#' and control characters, no blank first or last. FAILED_PRECONDITION where the recorder is off.
  absl::Status Mark(std::string_view label);

  // The events in the ring are numbered from first() to end(), of all that there ever were.
  [[nodiscard]] uint64_t first() const { return end_ <= events_.size() ? 0 : end_ - events_.size(); }
  [[nodiscard]] uint64_t end() const { return end_; }
  [[nodiscard]] const RecordedEvent& event(uint64_t number) const { return events_[number % events_.size()]; }
  // The label of a mark.
  [[nodiscard]] const std::string& label(const RecordedEvent& mark) const {
    return labels_[static_cast<size_t>(mark.address - labels_dropped_)];
  }
  // When the event happened, or up to kEventsPerTime events before; never decreasing.
  [[nodiscard]] std::chrono::system_clock::time_point time(uint64_t number) const {
    return times_[(number / kEventsPerTime) % times_.size()];
  }

  // OK, or INTERNAL naming the inconsistency. O(events).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  void Push(const RecordedEvent& event) {
    RecordedEvent& slot = events_[next_];
    // No slot that was not written yet holds a mark. Where there are none at all the slot need not be read, which the
    // cache has long forgotten.
    if (!labels_.empty() && slot.kind == RecordedEvent::Kind::kMark) DropLabel();
    // One by one: copied as a whole it would go by way of the stack, in words wider than the fields that were just
    // stored there, and the processor waits where a load covers several stores.
    slot.address = event.address;
    slot.bytes = event.bytes;
    slot.stream = event.stream;
    slot.other = event.other;
    slot.kind = event.kind;
    if (end_ % kEventsPerTime == 0) NoteTime();
    ++end_;
    if (++next_ == events_.size()) next_ = 0;
  }
  void NoteTime();
  void DropLabel();

  std::vector<RecordedEvent> events_;
  std::vector<std::chrono::system_clock::time_point> times_;  // of every kEventsPerTime-th event, in a ring as well
  std::deque<std::string> labels_;
  uint64_t labels_dropped_ = 0;
  uint64_t end_ = 0;
  size_t next_ = 0;  // end_ modulo the ring's size
};

// A block that is live when a recording is written.
struct RecordedBlock {
  DeviceAddress address;
  Bytes bytes;  // asked for
  uint32_t stream = 0;
};

// The ring as a trace in the base format of docs/trace_format.md. Blocks that were live when it begins come first, in
// order of address, and the mark `prologue_end` after them; they are those that the ring frees or that are in `live`,
// and that it does not allocate. Which other streams used them before is not known any more. Ids count allocations
// from 0. A request that failed is a mark oom_<bytes>. Blocks end at their Free, pending or not. O(events, and a sort
// of the prologue).
[[nodiscard]] std::string FormatRecording(const Recorder& recorder, absl::Span<const RecordedBlock> live);

}  // namespace expanse

#endif  // EXPANSE_CORE_RECORDER_H_

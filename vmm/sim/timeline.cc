#include "vmm/sim/timeline.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace expanse::sim {
namespace {

// Below this many intervals sweeping is not worth its while.
constexpr size_t kSmallPending = 64;

constexpr uint64_t kLegacyStream = 1;     // CU_STREAM_LEGACY
constexpr uint64_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

// The sum, or the end of time. Neither may be negative.
VirtualTime Plus(VirtualTime a, VirtualTime b) { return b > VirtualTime::max() - a ? VirtualTime::max() : a + b; }

}  // namespace

std::string PendingWork::ToString() const {
  return absl::StrCat(work.ToString(), ", which uses ", expanse::ToString(range), " until ", end.count(), " ns");
}

Timeline::Timeline() = default;
Timeline::~Timeline() = default;

void Timeline::Point::Join(const Point& other) {
  end = std::max(end, other.end);
  clock.Join(other.clock);
}

void Timeline::Advance(VirtualTime by) { now_ = Plus(now_, by); }

// --- Contexts --------------------------------------------------------------------------------------------------------

void Timeline::AddContext(abi::Context context, DeviceOrdinal device) {
  contexts_[context].device = device;
  // The call below adds to `streams`; the legacy stream is made at once, as every blocking stream looks at it.
  const StreamId legacy = NewStream(context, /*legacy=*/true, /*blocking=*/true, nullptr);
  contexts_.at(context).legacy = legacy;
}

VirtualTime Timeline::RemoveContext(abi::Context context) {
  const VirtualTime held = SynchronizeContext(context);
  const std::vector<StreamId> streams = contexts_.at(context).streams;
  for (const StreamId id : streams) DropStream(id);
  std::vector<abi::Event> events;
  for (const auto& [handle, event] : events_) {
    if (event.context == context) events.push_back(handle);
  }
  std::sort(events.begin(), events.end(), std::less<>());  // So that values are reused in the same order in every run.
  for (const abi::Event event : events) (void)DestroyEvent(event);
  contexts_.erase(context);
  return held;
}

// --- Streams ---------------------------------------------------------------------------------------------------------

StreamId Timeline::NewStream(abi::Context context, bool legacy, bool blocking, abi::Stream handle) {
  Context& owner = contexts_.at(context);
  const StreamId id{++last_stream_id_};
  auto stream = std::make_unique<Stream>();
  stream->info = StreamInfo{context, owner.device, legacy, blocking};
  stream->handle = handle;
  stream->slot = slots_.Take();
  stream->last = Point{now_, host_};
  streams_.emplace(id, std::move(stream));
  owner.streams.push_back(id);
  return id;
}

void Timeline::DropStream(StreamId id) {
  const Stream& stream = *streams_.at(id);
  Context& owner = contexts_.at(stream.info.context);
  owner.gone.Join(stream.last);
  if (stream.info.blocking) owner.gone_blocking.Join(stream.last);
  owner.streams.erase(std::find(owner.streams.begin(), owner.streams.end(), id));
  slots_.Retire(Epoch{stream.slot, stream.last.clock.at(stream.slot)});
  if (stream.handle != nullptr) {
    streams_by_handle_.erase(stream.handle);
    stream_handles_.Free(stream.handle);
  }
  streams_.erase(id);
  slots_.FreeKnown(host_);
}

abi::Stream Timeline::CreateStream(abi::Context context, bool blocking) {
  const abi::Stream handle = stream_handles_.Take();
  streams_by_handle_[handle] = NewStream(context, /*legacy=*/false, blocking, handle);
  return handle;
}

bool Timeline::DestroyStream(abi::Stream stream) {
  const auto it = streams_by_handle_.find(stream);
  if (it == streams_by_handle_.end()) return false;
  DropStream(it->second);
  return true;
}

std::optional<StreamId> Timeline::FindStream(abi::Stream stream, abi::Context current, std::thread::id thread) {
  const uint64_t value = reinterpret_cast<uintptr_t>(stream);
  if (value > kPerThreadStream) {
    const auto it = streams_by_handle_.find(stream);
    if (it == streams_by_handle_.end()) return std::nullopt;
    return it->second;
  }
  const auto context = contexts_.find(current);
  if (context == contexts_.end()) return std::nullopt;
  if (value <= kLegacyStream) return context->second.legacy;
  const auto known = context->second.per_thread.find(thread);
  if (known != context->second.per_thread.end()) return known->second;
  const StreamId id = NewStream(current, /*legacy=*/false, /*blocking=*/true, nullptr);
  contexts_.at(current).per_thread[thread] = id;
  return id;
}

Timeline::StreamInfo Timeline::Info(StreamId stream) const { return streams_.at(stream)->info; }

bool Timeline::QueryStream(StreamId stream) {
  const Point& last = streams_.at(stream)->last;
  if (last.end > now_) return false;
  HostSees(last);
  return true;
}

VirtualTime Timeline::SynchronizeStream(StreamId stream) { return WaitFor(streams_.at(stream)->last); }

VirtualTime Timeline::SynchronizeContext(abi::Context context) {
  const Context& owner = contexts_.at(context);
  Point all = owner.gone;
  for (const StreamId id : owner.streams) {
    Stream& stream = *streams_.at(id);
    if (!std::exchange(stream.host_knows_last, true)) all.Join(stream.last);
  }
  return WaitFor(all);
}

void Timeline::HostSees(const Point& point) {
  host_.Join(point.clock);
  slots_.FreeKnown(host_);
}

VirtualTime Timeline::WaitFor(const Point& point) {
  const VirtualTime held = point.end > now_ ? point.end - now_ : VirtualTime{};
  now_ += held;
  stalled_ = Plus(stalled_, held);
  HostSees(point);
  return held;
}

// --- Events ----------------------------------------------------------------------------------------------------------

abi::Event Timeline::CreateEvent(abi::Context context) {
  const abi::Event handle = event_handles_.Take();
  events_[handle].context = context;
  return handle;
}

bool Timeline::DestroyEvent(abi::Event event) {
  if (events_.erase(event) == 0) return false;
  event_handles_.Free(event);
  return true;
}

std::optional<abi::Context> Timeline::FindEvent(abi::Event event) const {
  const auto it = events_.find(event);
  if (it == events_.end()) return std::nullopt;
  return it->second.context;
}

void Timeline::Record(abi::Event event, StreamId stream) {
  Stream& recorded = *streams_.at(stream);
  BeginAction(recorded);
  Event& record = events_.at(event);
  record.recorded = true;
  record.point = recorded.last;
}

void Timeline::Wait(StreamId stream, abi::Event event) {
  Stream& waiting = *streams_.at(stream);
  BeginAction(waiting);
  const Event& awaited = events_.at(event);
  if (awaited.recorded) waiting.last.Join(awaited.point);
}

bool Timeline::QueryEvent(abi::Event event) {
  const Event& queried = events_.at(event);
  if (!queried.recorded) return true;
  if (queried.point.end > now_) return false;
  HostSees(queried.point);
  return true;
}

VirtualTime Timeline::SynchronizeEvent(abi::Event event) {
  const Event& awaited = events_.at(event);
  return awaited.recorded ? WaitFor(awaited.point) : VirtualTime{};
}

// --- Work ------------------------------------------------------------------------------------------------------------

void Timeline::BeginAction(Stream& stream) {
  stream.host_knows_last = false;
  stream.last.end = std::max(stream.last.end, now_);
  stream.last.clock.Join(host_);
  if (!stream.info.blocking) return;
  const Context& owner = contexts_.at(stream.info.context);
  if (!stream.info.legacy) {
    stream.last.Join(streams_.at(owner.legacy)->last);
    return;
  }
  stream.last.Join(owner.gone_blocking);
  for (const StreamId id : owner.streams) {
    const Stream& other = *streams_.at(id);
    if (other.info.blocking && !other.info.legacy) stream.last.Join(other.last);
  }
}

QueuedWork Timeline::Enqueue(StreamId stream, VirtualTime duration, absl::Span<const WorkAccess> accesses,
                             const char* what) {
  return Queue(stream, duration, VirtualTime{}, accesses, what);
}

QueuedWork Timeline::EnqueueUntil(StreamId stream, VirtualTime end, absl::Span<const WorkAccess> accesses,
                                  const char* what) {
  return Queue(stream, VirtualTime{}, end, accesses, what);
}

QueuedWork Timeline::Queue(StreamId stream, VirtualTime duration, VirtualTime until,
                           absl::Span<const WorkAccess> accesses, const char* what) {
  Stream& queue = *streams_.at(stream);
  BeginAction(queue);
  QueuedWork queued;
  queued.work = WorkRef{++work_count_, stream, what};
  queued.start = queue.last.end;
  queued.end = std::max(Plus(queued.start, duration), until);

  const Epoch epoch{queue.slot, queue.last.clock.at(queue.slot) + 1};
  for (const WorkAccess& access : accesses) {
    if (queued.end > now_) NotePending(access.range, Use{queued.work, queued.end});
    for (const PhysicalExtent& extent : access.extents) {
      races_.Touch(extent, access.writes, queued.work, epoch, queue.last.clock, queued.races);
    }
  }
  races_.Sweep(host_);

  queue.last.clock.Set(epoch.slot, epoch.tick);
  queue.last.end = queued.end;
  latest_end_ = std::max(latest_end_, queued.end);
  return queued;
}

void Timeline::NotePending(const AddressRange& range, const Use& use) {
  pending_.Update(range.begin.value(), range.end().value(), [&](uint64_t /*begin*/, uint64_t /*end*/, Use& latest) {
    if (use.end >= latest.end) latest = use;
  });
  if (pending_.size() < sweep_pending_at_) return;
  pending_.EraseIf([&](const Use& complete) { return complete.end <= now_; });
  sweep_pending_at_ = std::max(kSmallPending, 2 * pending_.size());
}

std::vector<PendingWork> Timeline::PendingOn(AddressRange range) const {
  std::vector<PendingWork> found;
  pending_.ForEach(range.begin.value(), range.end().value(), [&](uint64_t begin, uint64_t end, const Use& use) {
    const auto is_it = [&use](const PendingWork& pending) { return pending.work == use.work; };
    if (use.end > now_ && std::none_of(found.begin(), found.end(), is_it)) {
      found.push_back(PendingWork{use.work, use.end, AddressRange{DeviceAddress(begin), Bytes(end - begin)}});
    }
    return true;
  });
  return found;
}

void Timeline::ForgetRange(AddressRange range) { pending_.Erase(range.begin.value(), range.end().value()); }

void Timeline::ForgetAllocation(AllocationId allocation) { races_.Forget(allocation); }

Timeline::Footprint Timeline::footprint() const { return Footprint{pending_.size(), races_.size(), slots_.count()}; }

}  // namespace expanse::sim

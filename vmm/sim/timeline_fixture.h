// For tests: a timeline, streams on it, and work that all touches the same memory.

#ifndef EXPANSE_VMM_SIM_TIMELINE_FIXTURE_H_
#define EXPANSE_VMM_SIM_TIMELINE_FIXTURE_H_

#include <chrono>
#include <cstdint>
#include <thread>

#include "gtest/gtest.h"
#include "vmm/sim/timeline.h"

namespace expanse::sim {

inline constexpr AllocationId kMemory{1};
inline const AddressRange kRange{DeviceAddress(0x1000000), MiB(2)};

// A timeline with one context.
class TimelineTest : public ::testing::Test {
 protected:
  TimelineTest() { timeline_.AddContext(context_, DeviceOrdinal(0)); }
  ~TimelineTest() override { EXPECT_TRUE(timeline_.CheckInvariants().ok()) << timeline_.CheckInvariants(); }

  StreamId Find(abi::Stream handle) {
    const auto id = timeline_.FindStream(handle, context_, std::this_thread::get_id());
    EXPECT_TRUE(id.has_value());
    return id.value_or(StreamId{});
  }
  StreamId Legacy() { return Find(nullptr); }
  StreamId PerThread() { return Find(StreamHandlePerThread()); }
  StreamId Blocking() { return Find(timeline_.CreateStream(context_, /*blocking=*/true)); }
  StreamId NonBlocking() { return Find(timeline_.CreateStream(context_, /*blocking=*/false)); }
  abi::Event NewEvent() { return timeline_.CreateEvent(context_); }

  static abi::Stream StreamHandlePerThread() { return static_cast<abi::Stream>(StreamHandle::PerThread().raw()); }

  // Queues work of 10 us on the memory, seen at `at`.
  QueuedWork Use(StreamId stream, bool writes, DeviceAddress at = kRange.begin) {
    const WorkAccess access{{at, kRange.size}, writes, {{kMemory, Bytes(0), kRange.size}}};
    QueuedWork queued = timeline_.Enqueue(stream, std::chrono::microseconds(10), {&access, 1}, "test");
    EXPECT_TRUE(timeline_.CheckInvariants().ok()) << timeline_.CheckInvariants();
    return queued;
  }
  QueuedWork Write(StreamId stream) { return Use(stream, true); }
  QueuedWork Read(StreamId stream) { return Use(stream, false); }

  const abi::Context context_ = reinterpret_cast<abi::Context>(0x10);
  Timeline timeline_;
};

// Work on the index-th 4 KiB of the memory.
inline WorkAccess Block(uint64_t index, bool writes) {
  return {{DeviceAddress(0x1000000 + index * 4096), KiB(4)}, writes, {{kMemory, KiB(4 * index), KiB(4)}}};
}

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_TIMELINE_FIXTURE_H_

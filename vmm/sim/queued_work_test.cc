// Work on streams, as it meets memory: hazards, copies, waits, and the costs of calls.

#include <chrono>

#include "vmm/sim/sim_fixture.h"

namespace expanse::sim {
namespace {

using std::chrono::microseconds;

class QueuedWork : public SimTest {
 protected:
  void SetUp() override {
    Config config = SmallConfig();
    config.memory = MemoryMode::kAccounting;
    StartWithContext(config);
    base = Reserve(4 * kChunk);
    handle = MapNew(base);
    ASSERT_EQ(d.stream_create(&one, abi::kStreamNonBlocking), abi::kSuccess);
    ASSERT_EQ(d.stream_create(&two, abi::kStreamNonBlocking), abi::kSuccess);
  }
  abi::Result Launch(abi::Stream stream, abi::DevicePtr address, size_t size, bool writes = true) {
    const sim::Access access{{DeviceAddress(address), Bytes(size)}, writes};
    return sim->Launch(StreamHandle(stream), microseconds(10), {&access, 1});
  }
  [[nodiscard]] Hazard::Kind OnlyHazard() const {
    EXPECT_EQ(sim->hazard_count(), 1u);
    return sim->hazards().front().kind;
  }

  abi::DevicePtr base = 0;
  abi::MemHandle handle = 0;
  abi::Stream one = nullptr, two = nullptr;
};

TEST_F(QueuedWork, UnmappingUnderWorkIsAHazardAndSticks) {
  ASSERT_EQ(Launch(one, base, 100), abi::kSuccess);
  EXPECT_FALSE(sim->Idle());
  EXPECT_EQ(d.mem_unmap(base, kChunk), abi::kSuccess);
  EXPECT_EQ(OnlyHazard(), Hazard::Kind::kUnmapUnderWork);
  EXPECT_EQ(d.ctx_synchronize(), abi::kIllegalAddress);
  EXPECT_EQ(d.mem_map(base, kChunk, 0, handle, 0), abi::kIllegalAddress);
  sim->ResetStickyError();
  EXPECT_EQ(d.ctx_synchronize(), abi::kSuccess);
}

TEST_F(QueuedWork, UnmappingAfterAWaitIsFine) {
  ASSERT_EQ(Launch(one, base, 100), abi::kSuccess);
  EXPECT_EQ(d.stream_query(one), abi::kNotReady);
  EXPECT_EQ(d.stream_synchronize(one), abi::kSuccess);
  EXPECT_EQ(sim->now(), microseconds(10));
  EXPECT_EQ(sim->counters().stalled, microseconds(10));
  EXPECT_EQ(d.mem_unmap(base, kChunk), abi::kSuccess);
  EXPECT_EQ(sim->hazard_count(), 0u);
}

TEST_F(QueuedWork, UnmappingElsewhereIsFine) {
  MapNew(base + kChunk);
  ASSERT_EQ(Launch(one, base, kChunk), abi::kSuccess);
  EXPECT_EQ(d.mem_unmap(base + kChunk, kChunk), abi::kSuccess);
  EXPECT_EQ(sim->hazard_count(), 0u);
}

TEST_F(QueuedWork, UnorderedWorkRacesThroughAnAlias) {
  ASSERT_EQ(d.mem_map(base + 2 * kChunk, kChunk, 0, handle, 0), abi::kSuccess);
  ASSERT_EQ(Access(base + 2 * kChunk, kChunk), abi::kSuccess);
  ASSERT_EQ(Launch(one, base + 64, 64), abi::kSuccess);
  ASSERT_EQ(Launch(two, base + 2 * kChunk + 128, 64), abi::kSuccess);  // Beside it.
  EXPECT_EQ(sim->hazard_count(), 0u);
  ASSERT_EQ(Launch(two, base + 2 * kChunk + 127, 1, false), abi::kSuccess);  // Its last byte.
  EXPECT_EQ(OnlyHazard(), Hazard::Kind::kRace);
  EXPECT_EQ(d.ctx_synchronize(), abi::kSuccess);  // Wrong results, but no fault.
}

TEST_F(QueuedWork, AnEventOrdersIt) {
  abi::Event event = nullptr;
  ASSERT_EQ(d.event_create(&event, abi::kEventDisableTiming), abi::kSuccess);
  EXPECT_EQ(d.event_query(event), abi::kSuccess);
  ASSERT_EQ(Launch(one, base, 64), abi::kSuccess);
  ASSERT_EQ(d.event_record(event, one), abi::kSuccess);
  EXPECT_EQ(d.event_query(event), abi::kNotReady);
  ASSERT_EQ(d.stream_wait_event(two, event, 0), abi::kSuccess);
  ASSERT_EQ(Launch(two, base, 64), abi::kSuccess);
  EXPECT_EQ(d.event_synchronize(event), abi::kSuccess);
  EXPECT_EQ(sim->now(), microseconds(10));
  EXPECT_EQ(d.event_destroy(event), abi::kSuccess);
  EXPECT_EQ(d.event_destroy(event), abi::kInvalidHandle);
  EXPECT_EQ(d.event_record(event, one), abi::kInvalidHandle);
  EXPECT_EQ(sim->hazard_count(), 0u);
}

TEST_F(QueuedWork, WorkOnUnmappedBytesFaultsWhenItRuns) {
  ASSERT_EQ(Launch(one, base, 64), abi::kSuccess);
  ASSERT_EQ(Launch(one, base + kChunk - 1, 2), abi::kSuccess);  // Its last byte is not mapped; starts at 10 us.
  EXPECT_EQ(OnlyHazard(), Hazard::Kind::kAccessFault);
  EXPECT_EQ(d.stream_query(one), abi::kNotReady);
  sim->Advance(microseconds(9));
  EXPECT_EQ(d.stream_query(one), abi::kNotReady);
  sim->Advance(microseconds(1));
  EXPECT_EQ(d.stream_query(one), abi::kIllegalAddress);
  EXPECT_EQ(Launch(two, base, 64), abi::kIllegalAddress);
}

TEST_F(QueuedWork, AWaitForFaultyWorkReportsIt) {
  ASSERT_EQ(Launch(one, base, 64), abi::kSuccess);
  ASSERT_EQ(Launch(one, base + 3 * kChunk, 1), abi::kSuccess);
  EXPECT_EQ(d.stream_synchronize(one), abi::kIllegalAddress);
}

TEST_F(QueuedWork, WritingReadOnlyMemoryFaults) {
  ASSERT_EQ(Access(base, kChunk, abi::kAccessRead), abi::kSuccess);
  ASSERT_EQ(Launch(one, base, 64, false), abi::kSuccess);
  EXPECT_EQ(sim->hazard_count(), 0u);
  ASSERT_EQ(Launch(one, base, 64, true), abi::kSuccess);
  EXPECT_EQ(OnlyHazard(), Hazard::Kind::kAccessFault);
}

TEST_F(QueuedWork, LaunchUntilEndsThen) {
  ASSERT_EQ(sim->LaunchUntil(StreamHandle(one), microseconds(25), {}), abi::kSuccess);
  ASSERT_EQ(sim->LaunchUntil(StreamHandle(one), microseconds(5), {}), abi::kSuccess);  // No sooner than it may.
  EXPECT_EQ(d.ctx_synchronize(), abi::kSuccess);
  EXPECT_EQ(sim->now(), microseconds(25));
  EXPECT_EQ(sim->Launch(StreamHandle(one), microseconds(-1), {}), abi::kInvalidValue);
}

TEST_F(QueuedWork, StreamsAndTheirNumbers) {
  EXPECT_EQ(d.stream_destroy(nullptr), abi::kInvalidHandle);
  abi::u64 old_id = 0, new_id = 0;
  ASSERT_EQ(d.stream_get_id(two, &old_id), abi::kSuccess);
  ASSERT_EQ(d.stream_destroy(two), abi::kSuccess);
  EXPECT_EQ(d.stream_query(two), abi::kInvalidHandle);
  EXPECT_EQ(Launch(two, base, 64), abi::kInvalidHandle);
  abi::Stream reused = nullptr;
  ASSERT_EQ(d.stream_create(&reused, 0), abi::kSuccess);
  EXPECT_EQ(reused, two);
  ASSERT_EQ(d.stream_get_id(reused, &new_id), abi::kSuccess);
  EXPECT_NE(new_id, old_id);
  EXPECT_EQ(d.stream_create(&reused, 2), abi::kInvalidValue);
  int status = 9;
  EXPECT_EQ(d.stream_is_capturing(two, &status), abi::kSuccess);
  EXPECT_EQ(status, abi::kCaptureNone);
  abi::Event event = nullptr;
  EXPECT_EQ(d.event_create(&event, 8), abi::kInvalidValue);
  EXPECT_EQ(d.event_create(&event, abi::kEventInterprocess), abi::kInvalidValue);
  EXPECT_EQ(d.stream_wait_event(two, nullptr, 0), abi::kInvalidHandle);
}

TEST_F(QueuedWork, CaptureModeIsTheThreads) {
  int mode = abi::kCaptureRelaxed;
  EXPECT_EQ(d.thread_exchange_stream_capture_mode(&mode), abi::kSuccess);
  EXPECT_EQ(mode, abi::kCaptureGlobal);
  EXPECT_EQ(d.thread_exchange_stream_capture_mode(&mode), abi::kSuccess);
  EXPECT_EQ(mode, abi::kCaptureRelaxed);
  mode = 3;
  EXPECT_EQ(d.thread_exchange_stream_capture_mode(&mode), abi::kInvalidValue);
}

TEST_F(QueuedWork, FreeingClassicMemoryWaitsForTheDevice) {
  abi::DevicePtr classic = 0;
  ASSERT_EQ(d.mem_alloc(&classic, 100), abi::kSuccess);
  ASSERT_EQ(Launch(one, classic, 100), abi::kSuccess);
  ASSERT_EQ(d.mem_free(classic), abi::kSuccess);
  EXPECT_EQ(sim->now(), microseconds(10));
  EXPECT_EQ(sim->hazard_count(), 0u);
}

TEST_F(QueuedWork, CopiesCheckTheirRangesAtTheCall) {
  char host[64] = {};
  EXPECT_EQ(d.memcpy_htod_async(base, nullptr, 8, one), abi::kInvalidValue);
  EXPECT_EQ(d.memcpy_htod_async(base, nullptr, 0, one), abi::kSuccess);
  EXPECT_EQ(d.memcpy_htod_async(base + 3 * kChunk, host, 8, one), abi::kInvalidValue);
  EXPECT_EQ(d.memcpy_dtoh_async(host, base + kChunk - 4, 8, one), abi::kInvalidValue);
  EXPECT_EQ(d.memcpy_htod_async(base, host, 8, reinterpret_cast<abi::Stream>(uintptr_t{0x999})), abi::kInvalidHandle);
  EXPECT_EQ(d.memset_d8_async(base, 0, SIZE_MAX, one), abi::kInvalidValue);
  ASSERT_EQ(Access(base, kChunk, abi::kAccessRead), abi::kSuccess);
  EXPECT_EQ(d.memcpy_htod_async(base, host, 8, one), abi::kInvalidValue);
  EXPECT_EQ(d.memcpy_dtoh_async(host, base, 8, one), abi::kSuccess);
  ASSERT_EQ(Access(base, kChunk, abi::kAccessNone), abi::kSuccess);
  EXPECT_EQ(d.memcpy_dtoh_async(host, base, 8, one), abi::kInvalidValue);
  EXPECT_EQ(sim->hazard_count(), 0u);
}

TEST_F(QueuedWork, CopiesAreWorkOfTheirStream) {
  char host[64] = {};
  ASSERT_EQ(Launch(one, base, 64), abi::kSuccess);
  ASSERT_EQ(d.memcpy_dtoh_async(host, base, 64, one), abi::kSuccess);  // Returns when the bytes are there.
  EXPECT_EQ(sim->now(), microseconds(10));
  ASSERT_EQ(Launch(one, base, 64), abi::kSuccess);
  ASSERT_EQ(d.memset_d8_async(base, 1, 64, two), abi::kSuccess);
  EXPECT_EQ(OnlyHazard(), Hazard::Kind::kRace);
}

TEST_F(SimTest, CallsCostVirtualTime) {
  for (const bool advance : {true, false}) {
    sim.reset();
    Config config = SmallConfig();
    config.calls_advance_clock = advance;
    config.costs.costs[static_cast<size_t>(EntryPoint::mem_create)] = {10, 2, 0.5};
    StartWithContext(config);
    Create(2 * kChunk);
    EXPECT_EQ(sim->counters().modelled[static_cast<size_t>(EntryPoint::mem_create)], microseconds(14));
    EXPECT_EQ(sim->counters().TotalModelled(), microseconds(14));
    EXPECT_EQ(sim->now(), advance ? microseconds(14) : microseconds(0));
    sim->DelayCalls(EntryPoint::mem_create, microseconds(100));
    Create();
    EXPECT_EQ(sim->counters().TotalModelled(), microseconds(14 + 113));
    EXPECT_EQ(sim->counters().handles_created, 2u);
    EXPECT_EQ(sim->counters().calls[static_cast<size_t>(EntryPoint::mem_create)], 2u);
    EXPECT_GT(sim->counters().host_inside.count(), 0);
    sim->ResetCounters();
    EXPECT_EQ(sim->counters().TotalCalls(), 0u);
    EXPECT_EQ(sim->counters().TotalModelled(), microseconds(0));
  }
}

}  // namespace
}  // namespace expanse::sim

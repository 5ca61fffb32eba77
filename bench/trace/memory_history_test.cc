#include "bench/trace/memory_history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = HistoryEvent::Kind;

HistoryEvent Event(Kind kind, uint64_t address, uint64_t size = 100, uint64_t stream = 0) {
  return {kind, DeviceAddress(address), Bytes(size), stream};
}

TraceEvent Allocated(uint32_t block, uint64_t size, int32_t stream = 0) {
  return {TraceOp::kAllocate, stream, block, size};
}
TraceEvent Freed(uint32_t block, int32_t stream = 0) { return {TraceOp::kFree, stream, block, 0}; }
TraceEvent Marked(uint32_t label) { return {TraceOp::kMark, 0, label, 0}; }

TEST(TraceFromHistory, ABlockLivesUntilItsFreeCompletes) {
  MemoryHistory history;
  history.events = {Event(Kind::kAllocate, 4096), Event(Kind::kFreeRequested, 4096), Event(Kind::kAllocate, 8192, 7),
                    Event(Kind::kFreeCompleted, 4096), Event(Kind::kFreeRequested, 8192, 7)};
  std::vector<std::string> warnings;
  const absl::StatusOr<Trace> trace = TraceFromHistory(history, "h", warnings);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->events, ElementsAre(Allocated(0, 100), Allocated(1, 7), Freed(0)));
  EXPECT_THAT(trace->labels, IsEmpty());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(TraceFromHistory, BlocksLiveBeforeComeFirstInOrderOfAddress) {
  MemoryHistory history;
  history.events = {Event(Kind::kFreeRequested, 9000, 3, 77), Event(Kind::kFreeCompleted, 9000, 3, 77),
                    Event(Kind::kAllocate, 9000, 4), Event(Kind::kFreeCompleted, 5000, 5)};
  history.live_at_end = {{DeviceAddress(9000), Bytes(4), 0}, {DeviceAddress(7000), Bytes(6), 0}};
  history.knows_live_at_end = true;
  std::vector<std::string> warnings;
  const absl::StatusOr<Trace> trace = TraceFromHistory(history, "h", warnings);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->events, ElementsAre(Allocated(0, 5), Allocated(1, 6), Allocated(2, 3, 1), Marked(0), Freed(2, 1),
                                         Allocated(3, 4), Freed(0)));
  EXPECT_THAT(trace->labels, ElementsAre("prologue_end"));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(TraceFromHistory, StreamsAreNumberedAsTheyAppearAndZeroStaysZero) {
  MemoryHistory history;
  history.events = {Event(Kind::kAllocate, 1, 9, 500), Event(Kind::kAllocate, 2, 9, 40),
                    Event(Kind::kAllocate, 3, 9, 0), Event(Kind::kAllocate, 4, 9, 500)};
  std::vector<std::string> warnings;
  const absl::StatusOr<Trace> trace = TraceFromHistory(history, "h", warnings);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->events,
              ElementsAre(Allocated(0, 9, 1), Allocated(1, 9, 2), Allocated(2, 9, 0), Allocated(3, 9, 1)));
}

TEST(TraceFromHistory, FailedRequestsBecomeMarks) {
  MemoryHistory history;
  history.events = {Event(Kind::kOutOfMemory, 0, 4202692608)};
  std::vector<std::string> warnings;
  const absl::StatusOr<Trace> trace = TraceFromHistory(history, "h", warnings);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->events, ElementsAre(Marked(0)));
  EXPECT_THAT(trace->labels, ElementsAre("oom_4202692608"));
}

TEST(TraceFromHistory, LostAndDoubledFreesAreMendedAndTold) {
  MemoryHistory history;
  history.events = {Event(Kind::kAllocate, 1, 9), Event(Kind::kAllocate, 1, 8), Event(Kind::kFreeCompleted, 1),
                    Event(Kind::kFreeCompleted, 1)};
  history.live_at_end = {{DeviceAddress(1), Bytes(8), 0}};
  history.knows_live_at_end = true;
  std::vector<std::string> warnings;
  const absl::StatusOr<Trace> trace = TraceFromHistory(history, "h", warnings);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->events, ElementsAre(Allocated(0, 9), Freed(0), Allocated(1, 8), Freed(1)));
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("h: 1 allocations at addresses that were live"),
                          HasSubstr("h: 1 frees of addresses that were not live"),
                          HasSubstr("h: 0 blocks are live after the last event, but 1 in the list of segments")));
}

TEST(TraceFromHistory, MoreThanCanBeLiveIsAnError) {
  MemoryHistory history;
  history.events = {Event(Kind::kAllocate, 1, kMaxLiveBytes.count()), Event(Kind::kAllocate, 2, 1)};
  std::vector<std::string> warnings;
  const absl::StatusOr<Trace> trace = TraceFromHistory(history, "h", warnings);
  EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(trace.status().message()), HasSubstr("h: event 1: allocates 1 bytes"));
}

}  // namespace
}  // namespace expanse::bench

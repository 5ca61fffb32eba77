#include "vmm/event.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using std::chrono_literals::operator""us;

class EventTest : public SimulatedDeviceTest {
 protected:
  void SetUp() override {
    SimulatedDeviceTest::SetUp();
    auto entered = ScopedContext::Enter(*device);
    ASSERT_TRUE(entered.ok());
    context.emplace(std::move(*entered));
    ASSERT_EQ(simulator->driver().stream_create(&raw_stream, abi::kStreamNonBlocking), abi::kSuccess);
    simulator->ResetCounters();
  }
  void TearDown() override {
    EXPECT_EQ(simulator->driver().stream_destroy(raw_stream), abi::kSuccess);
    context.reset();
    SimulatedDeviceTest::TearDown();
  }
  [[nodiscard]] StreamHandle stream() const { return StreamHandle(raw_stream); }
  void Work(std::chrono::microseconds duration) { ASSERT_EQ(simulator->Launch(stream(), duration, {}), abi::kSuccess); }

  std::optional<ScopedContext> context;
  abi::Stream raw_stream = nullptr;
};

TEST_F(EventTest, UnrecordedEventIsComplete) {
  auto event = Event::Create(*context);
  ASSERT_TRUE(event.ok()) << event.status();
  const absl::StatusOr<bool> done = event->Query();
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(*done);
}

TEST_F(EventTest, EventFollowsTheWorkBeforeItsRecordOnly) {
  auto event = Event::Create(*context);
  ASSERT_TRUE(event.ok());
  Work(1000000us);
  ASSERT_TRUE(event->Record(*context, stream()).ok());
  Work(1000000us);
  absl::StatusOr<bool> done = event->Query();
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(*done);
  simulator->Advance(1100000us);
  done = event->Query();
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(*done);
  EXPECT_FALSE(simulator->Idle());
  simulator->Advance(2000000us);
}

TEST_F(EventTest, SynchronizeWaitsUntilComplete) {
  auto event = Event::Create(*context);
  ASSERT_TRUE(event.ok());
  Work(1000000us);
  ASSERT_TRUE(event->Record(*context, stream()).ok());
  EXPECT_TRUE(event->Synchronize().ok());
  EXPECT_GE(simulator->now(), 1000000us);
  const absl::StatusOr<bool> done = event->Query();
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(*done);
}

TEST_F(EventTest, QueryNeedsNoContext) {
  auto event = Event::Create(*context);
  ASSERT_TRUE(event.ok());
  ASSERT_TRUE(event->Record(*context, stream()).ok());
  ASSERT_TRUE(context->Leave().ok());
  EXPECT_TRUE(event->Query().ok());
  EXPECT_TRUE(event->Synchronize().ok());
}

TEST_F(EventTest, ErrorsOfQueryAreNotTakenForAnswers) {
  auto event = Event::Create(*context);
  ASSERT_TRUE(event.ok());
  simulator->FailNthCall(EntryPoint::event_query, 1, abi::kLaunchFailed);
  EXPECT_TRUE(absl::IsInternal(event->Query().status()));
  simulator->FailNthCall(EntryPoint::event_synchronize, 1, abi::kLaunchFailed);
  EXPECT_TRUE(absl::IsInternal(event->Synchronize()));
}

TEST_F(EventTest, MovingPassesOwnershipOn) {
  {
    auto first = Event::Create(*context);
    auto second = Event::Create(*context);
    ASSERT_TRUE(first.ok() && second.ok());
    const abi::Event raw = first->raw();
    *second = std::move(*first);
    EXPECT_EQ(second->raw(), raw);
    const Event third = std::move(*second);
    EXPECT_TRUE(second->empty());
    EXPECT_EQ(third.raw(), raw);
  }
  EXPECT_EQ(simulator->ledger().events, 0u);
}

TEST_F(EventTest, PoolUsesEventsAgain) {
  EventPool events(*device);
  auto event = events.Record(*context, stream());
  ASSERT_TRUE(event.ok()) << event.status();
  events.Return(std::move(*event));
  EXPECT_EQ(events.spare(), 1u);
  simulator->ResetCounters();
  event = events.Record(*context, stream());
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(events.spare(), 0u);
  EXPECT_EQ(simulator->counters().TotalCalls(), 1u);
  EXPECT_EQ(simulator->ledger().events, 1u);
}

TEST_F(EventTest, PendingEventMayBeReturnedAndRecordedAgain) {
  EventPool events(*device);
  Work(1000000us);
  auto event = events.Record(*context, stream());
  ASSERT_TRUE(event.ok());
  events.Return(std::move(*event));
  event = events.Record(*context, StreamHandle());
  ASSERT_TRUE(event.ok());
  EXPECT_TRUE(event->Synchronize().ok());
  EXPECT_FALSE(simulator->Idle());  // the other stream's work was not waited for
  simulator->Advance(2000000us);
}

TEST_F(EventTest, FailedRecordGivesTheEventBack) {
  EventPool events(*device);
  simulator->FailNthCall(EntryPoint::event_record, 1, abi::kUnknown);
  EXPECT_TRUE(absl::IsInternal(events.Record(*context, stream()).status()));
  EXPECT_EQ(events.spare(), 1u);
}

TEST_F(EventTest, AnotherDevicesContextIsRefused) {
  auto other = Device::Open(simulator->driver(), DeviceOrdinal(0));
  ASSERT_TRUE(other.ok());
  EventPool events(**other);
  EXPECT_TRUE(absl::IsInvalidArgument(events.Record(*context, stream()).status()));
}

TEST(Event, EveryFailureIsReportedAndUndone) {
  FailEachCallInTurn(SmallConfig(), [](sim::Simulator& simulator) -> absl::Status {
    auto device = Device::Open(simulator.driver(), DeviceOrdinal(0));
    if (!device.ok()) return device.status();
    EventPool events(**device);
    auto context = ScopedContext::Enter(**device);
    if (!context.ok()) return context.status();
    for (int i = 0; i < 2; ++i) {
      auto event = events.Record(*context, StreamHandle());
      if (!event.ok()) return event.status();
      auto done = event->Query();
      if (!done.ok()) return done.status();
      absl::Status status = event->Synchronize();
      if (!status.ok()) return status;
      if (i == 0) events.Return(std::move(*event));
    }
    return context->Leave();
  });
}

}  // namespace
}  // namespace expanse

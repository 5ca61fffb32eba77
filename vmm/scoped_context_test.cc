#include "vmm/scoped_context.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

class ScopedContextTest : public SimulatedDeviceTest {
 protected:
  [[nodiscard]] abi::Context Current() const {
    abi::Context context = nullptr;
    EXPECT_EQ(simulator->driver().ctx_get_current(&context), abi::kSuccess);
    return context;
  }
};

TEST_F(ScopedContextTest, ContextIsCurrentInsideTheScopeOnly) {
  EXPECT_EQ(Current(), nullptr);
  {
    auto context = ScopedContext::Enter(*device);
    ASSERT_TRUE(context.ok());
    EXPECT_EQ(Current(), device->context());
    EXPECT_EQ(&context->device(), device.get());
  }
  EXPECT_EQ(Current(), nullptr);
}

TEST_F(ScopedContextTest, LeavePopsOnce) {
  auto outer = ScopedContext::Enter(*device);
  ASSERT_TRUE(outer.ok());
  {
    auto inner = ScopedContext::Enter(*device);
    ASSERT_TRUE(inner.ok());
    EXPECT_TRUE(inner->Leave().ok());
    EXPECT_EQ(Current(), device->context());
  }
  EXPECT_EQ(Current(), device->context());  // the inner destructor popped nothing
}

TEST_F(ScopedContextTest, MovedFromPopsNothing) {
  {
    auto context = ScopedContext::Enter(*device);
    ASSERT_TRUE(context.ok());
    const ScopedContext moved = std::move(*context);
    EXPECT_EQ(Current(), device->context());
  }
  EXPECT_EQ(Current(), nullptr);
  EXPECT_EQ(Calls(EntryPoint::ctx_pop_current), 1u);
}

TEST_F(ScopedContextTest, FailureToPushIsReportedAndNothingIsPopped) {
  simulator->FailNthCall(EntryPoint::ctx_push_current, 1, abi::kDeinitialized);
  EXPECT_TRUE(absl::IsFailedPrecondition(ScopedContext::Enter(*device).status()));
  EXPECT_EQ(Calls(EntryPoint::ctx_pop_current), 0u);
}

TEST_F(ScopedContextTest, FailureToPopIsReported) {
  auto context = ScopedContext::Enter(*device);
  ASSERT_TRUE(context.ok());
  simulator->FailNthCall(EntryPoint::ctx_pop_current, 1, abi::kUnknown);
  EXPECT_TRUE(absl::IsInternal(context->Leave()));
  abi::Context top = nullptr;
  EXPECT_EQ(simulator->driver().ctx_pop_current(&top), abi::kSuccess);
}

TEST_F(ScopedContextTest, ForeignContextOnTopIsReported) {
  auto context = ScopedContext::Enter(*device);
  ASSERT_TRUE(context.ok());
  // Something in the scope replaced the context and left it so.
  ASSERT_EQ(simulator->driver().ctx_push_current(device->context()), abi::kSuccess);
  ASSERT_EQ(simulator->driver().ctx_set_current(nullptr), abi::kSuccess);
  ASSERT_EQ(simulator->driver().ctx_set_current(nullptr), abi::kSuccess);
  EXPECT_FALSE(context->Leave().ok());
}

// Two entry points of a driver whose capture mode can be seen.
int capture_mode;
abi::Result ExchangeMode(int* mode) {
  std::swap(*mode, capture_mode);
  return abi::kSuccess;
}

TEST(ScopedRelaxedCapture, ModeIsRelaxedInsideTheScopeOnly) {
  capture_mode = abi::kCaptureThreadLocal;
  Driver driver;
  driver.thread_exchange_stream_capture_mode = &ExchangeMode;
  {
    const ScopedRelaxedCapture relaxed(driver);
    EXPECT_EQ(capture_mode, abi::kCaptureRelaxed);
  }
  EXPECT_EQ(capture_mode, abi::kCaptureThreadLocal);
}

TEST(ScopedRelaxedCapture, DoesNothingWhereTheDriverCannot) {
  Driver driver;
  { const ScopedRelaxedCapture relaxed(driver); }
  capture_mode = abi::kCaptureGlobal;
  driver.thread_exchange_stream_capture_mode = [](int* mode) {
    ++capture_mode;  // counts the calls
    *mode = -1;
    return abi::kNotSupported;
  };
  { const ScopedRelaxedCapture relaxed(driver); }
  EXPECT_EQ(capture_mode, abi::kCaptureGlobal + 1);
}

}  // namespace
}  // namespace expanse

#include "core/soft_limit.h"

#include "gtest/gtest.h"

namespace expanse {
namespace {

TEST(SoftLimit, AWarningStaysDueUntilItIsTakenOrTheMemoryHasFallen) {
  SoftLimit limit;
  limit.Set(MiB(10), [](Bytes, Bytes) {});
  limit.Update(MiB(12));
  limit.Update(MiB(11));  // by another thread, which gives memory back before the first can warn
  const std::optional<SoftLimitWarning> warning = limit.TakeDue();
  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->reserved, MiB(11));
  EXPECT_EQ(warning->soft_limit, MiB(10));
  EXPECT_FALSE(limit.TakeDue().has_value()) << "once a crossing";
  limit.Update(MiB(13));
  EXPECT_FALSE(limit.TakeDue().has_value());
  limit.Update(MiB(10));
  limit.Update(MiB(12));
  limit.Update(MiB(10));
  EXPECT_FALSE(limit.TakeDue().has_value()) << "it has fallen again";
}

}  // namespace
}  // namespace expanse

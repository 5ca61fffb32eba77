#include "vmm/sim/handle_values.h"

#include "gtest/gtest.h"
#include "vmm/abi.h"

namespace expanse::sim {
namespace {

TEST(HandleValues, TheValueFreedLastComesFirst) {
  HandleValues<abi::Stream> values(1);
  const abi::Stream a = values.Take();
  const abi::Stream b = values.Take();
  EXPECT_NE(a, b);
  values.Free(a);
  EXPECT_TRUE(values.IsFree(a));
  values.Free(b);
  EXPECT_EQ(values.Take(), b);
  EXPECT_FALSE(values.IsFree(b));
  EXPECT_EQ(values.Take(), a);
}

TEST(HandleValues, KindsDoNotMeet) {
  HandleValues<void*> streams(1), events(2);
  EXPECT_NE(streams.Take(), events.Take());
}

}  // namespace
}  // namespace expanse::sim

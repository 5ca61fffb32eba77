#include "vmm/sim/clock_slots.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace expanse::sim {
namespace {

TEST(ClockSlots, SlotsAreDistinctWhileInUse) {
  ClockSlots slots;
  const uint32_t a = slots.Take();
  const uint32_t b = slots.Take();
  EXPECT_NE(a, b);
  EXPECT_EQ(slots.count(), 2U);
  EXPECT_TRUE(slots.CheckInvariants({a, b}, VectorClock()).ok());
  EXPECT_FALSE(slots.CheckInvariants({a}, VectorClock()).ok()) << "b is lost";
  EXPECT_FALSE(slots.CheckInvariants({a, b, b}, VectorClock()).ok()) << "b is shared";
}

TEST(ClockSlots, ASlotIsReusedOnceTheHostKnowsItsWork) {
  ClockSlots slots;
  VectorClock host;
  const uint32_t slot = slots.Take();
  slots.Retire({slot, 3});
  host.Set(slot, 2);
  slots.FreeKnown(host);
  EXPECT_TRUE(slots.CheckInvariants({}, host).ok());
  const uint32_t other = slots.Take();
  EXPECT_NE(other, slot);
  host.Set(slot, 3);
  EXPECT_FALSE(slots.CheckInvariants({other}, host).ok()) << "it should have been freed by now";
  slots.FreeKnown(host);
  EXPECT_EQ(slots.Take(), slot);
  EXPECT_TRUE(slots.CheckInvariants({other, slot}, host).ok());
}

TEST(ClockSlots, ASlotThatNeverWorkedIsFreeAtOnce) {
  ClockSlots slots;
  const uint32_t slot = slots.Take();
  slots.Retire({slot, 0});
  slots.FreeKnown(VectorClock());
  EXPECT_EQ(slots.Take(), slot);
}

}  // namespace
}  // namespace expanse::sim

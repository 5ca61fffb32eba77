#include "vmm/units.h"

#include <type_traits>
#include <utility>

#include "gtest/gtest.h"

namespace expanse {
namespace {

template <typename A, typename B, typename = void>
struct CanAdd : std::false_type {};
template <typename A, typename B>
struct CanAdd<A, B, std::void_t<decltype(std::declval<A>() + std::declval<B>())>> : std::true_type {};

// Mixing kinds up must not compile.
static_assert(CanAdd<Bytes, Bytes>::value && CanAdd<DeviceAddress, Bytes>::value);
static_assert(!CanAdd<Bytes, ChunkCount>::value && !CanAdd<DeviceAddress, DeviceAddress>::value);
static_assert(!CanAdd<Bytes, int>::value && !std::is_convertible_v<int, Bytes>);

TEST(Units, RoundingGoesToMultiples) {
  EXPECT_EQ(RoundUp(Bytes(0), MiB(2)), Bytes(0));
  EXPECT_EQ(RoundUp(Bytes(1), MiB(2)), MiB(2));
  EXPECT_EQ(RoundUp(MiB(2), MiB(2)), MiB(2));
  EXPECT_EQ(RoundUp(Bytes(10), Bytes(7)), Bytes(14));
  EXPECT_EQ(RoundDown(MiB(2) - Bytes(1), MiB(2)), Bytes(0));
  EXPECT_EQ(RoundDown(MiB(5), MiB(2)), MiB(4));
  EXPECT_TRUE(IsMultipleOf(MiB(6), MiB(2)));
  EXPECT_FALSE(IsMultipleOf(MiB(5), MiB(2)));
}

TEST(Units, RangesAreHalfOpen) {
  const AddressRange range{DeviceAddress(0x1000), Bytes(0x100)};
  EXPECT_EQ(range.end(), DeviceAddress(0x1100));
  EXPECT_TRUE(range.Contains(DeviceAddress(0x1000)));
  EXPECT_FALSE(range.Contains(DeviceAddress(0x1100)));
  EXPECT_FALSE(range.Contains(DeviceAddress(0xfff)));
  EXPECT_TRUE(range.Contains(AddressRange{DeviceAddress(0x1080), Bytes(0x80)}));
  EXPECT_FALSE(range.Contains(AddressRange{DeviceAddress(0x1080), Bytes(0x81)}));
  EXPECT_FALSE(range.Overlaps(AddressRange{DeviceAddress(0x1100), Bytes(1)}));
  EXPECT_TRUE(range.Overlaps(AddressRange{DeviceAddress(0x10ff), Bytes(1)}));
}

TEST(Units, TextHasTheExactFigure) {
  EXPECT_EQ(ToString(Bytes(512)), "512 bytes");
  EXPECT_EQ(ToString(MiB(1536)), "1.50 GiB (1610612736 bytes)");
  EXPECT_EQ(ToString(ChunkCount(1)), "1 chunk");
  EXPECT_EQ(ToString(ChunkCount(3)), "3 chunks");
  EXPECT_EQ(ToString(DeviceAddress(0x7f00)), "0x7f00");
  EXPECT_EQ(ToString(AddressRange{DeviceAddress(0x1000), Bytes(16)}), "[0x1000, 0x1010)");
}

}  // namespace
}  // namespace expanse

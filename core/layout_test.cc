#include "core/layout.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace expanse {
namespace {

constexpr AddressRange kRange{DeviceAddress(0x1000), Bytes(1000)};

AddressRange At(uint64_t offset, uint64_t size) { return {kRange.begin + Bytes(offset), Bytes(size)}; }

TEST(Layout, TheSmallestGapIsTakenAndOfEqualsTheLowest) {
  Layout layout(kRange);
  layout.Occupy(At(0, 1000));
  for (const AddressRange gap : {At(500, 100), At(200, 100), At(700, 150), At(0, 50)}) layout.Vacate(gap);
  EXPECT_EQ(layout.Place(Bytes(60)), At(200, 1).begin);
  EXPECT_EQ(layout.Place(Bytes(50)), At(0, 1).begin);
  EXPECT_EQ(layout.Place(Bytes(120)), At(700, 1).begin);
  EXPECT_EQ(layout.Place(Bytes(151)), std::nullopt);
  EXPECT_EQ(layout.CheckInvariants(), absl::OkStatus());
}

TEST(Layout, NeighbouringGapsMerge) {
  Layout layout(kRange);
  layout.Occupy(At(0, 300));
  layout.Occupy(At(300, 300));
  layout.Occupy(At(600, 400));
  EXPECT_EQ(layout.gaps().size(), 0u);
  layout.Vacate(At(0, 300));
  layout.Vacate(At(600, 400));
  EXPECT_EQ(layout.gaps().size(), 2u);
  layout.Vacate(At(300, 300));
  EXPECT_EQ(layout.gaps().size(), 1u);
  EXPECT_EQ(layout.Place(Bytes(1000)), kRange.begin);
  EXPECT_EQ(layout.CheckInvariants(), absl::OkStatus());
}

TEST(Layout, APartInTheMiddleOfAGapCanBeOccupied) {
  Layout layout(kRange);
  layout.Occupy(At(400, 100));
  EXPECT_EQ(layout.gaps().size(), 2u);
  EXPECT_EQ(layout.Place(Bytes(400)), At(0, 1).begin);
  EXPECT_EQ(layout.Place(Bytes(450)), At(500, 1).begin);
}

// Compared with an array of one flag a byte.
TEST(Layout, AgreesWithAnExhaustiveSearch) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Layout layout(kRange);
    std::vector<bool> occupied(kRange.size.count());
    std::map<uint64_t, uint64_t> blocks;
    for (int i = 0; i < 300; ++i) {
      if (random() % 2 == 0 && !blocks.empty()) {
        const auto it = std::next(blocks.begin(), static_cast<std::ptrdiff_t>(random() % blocks.size()));
        layout.Vacate(At(it->first, it->second));
        for (uint64_t at = 0; at < it->second; ++at) occupied[it->first + at] = false;
        blocks.erase(it);
      } else {
        const uint64_t size = 1 + random() % 90;
        uint64_t best = occupied.size();
        uint64_t best_size = occupied.size() + 1;
        for (uint64_t begin = 0; begin < occupied.size();) {
          uint64_t end = begin;
          while (end < occupied.size() && !occupied[end]) ++end;
          if (end - begin >= size && end - begin < best_size) {
            best = begin;
            best_size = end - begin;
          }
          begin = end + 1;
        }
        const std::optional<DeviceAddress> place = layout.Place(Bytes(size));
        ASSERT_EQ(place.has_value(), best < occupied.size());
        if (!place) continue;
        ASSERT_EQ(*place, At(best, 1).begin);
        layout.Occupy({*place, Bytes(size)});
        for (uint64_t at = 0; at < size; ++at) occupied[best + at] = true;
        blocks.emplace(best, size);
      }
      ASSERT_EQ(layout.CheckInvariants(), absl::OkStatus());
    }
  }
}

}  // namespace
}  // namespace expanse

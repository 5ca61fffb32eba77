#include "vmm/sim/interval_map.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace expanse::sim {
namespace {

std::string Dump(const IntervalMap<int>& map, uint64_t begin = 0, uint64_t end = UINT64_MAX) {
  std::string out;
  map.ForEach(begin, end, [&](uint64_t from, uint64_t to, int value) {
    absl::StrAppend(&out, "[", from, ",", to, ")=", value, " ");
    return true;
  });
  return out;
}

void Assign(IntervalMap<int>& map, uint64_t begin, uint64_t end, int value) {
  map.Update(begin, end, [&](uint64_t, uint64_t, int& v) { v = value; });
}

TEST(IntervalMap, UpdateSplitsWhatItOverlaps) {
  IntervalMap<int> map;
  Assign(map, 10, 40, 1);
  Assign(map, 20, 30, 2);
  EXPECT_EQ(Dump(map), "[10,20)=1 [20,30)=2 [30,40)=1 ");
  EXPECT_TRUE(map.CheckInvariants().ok());
}

TEST(IntervalMap, EqualNeighboursJoin) {
  IntervalMap<int> map;
  Assign(map, 10, 20, 1);
  Assign(map, 30, 40, 1);
  EXPECT_EQ(map.size(), 2U);
  Assign(map, 20, 30, 1);
  EXPECT_EQ(Dump(map), "[10,40)=1 ");
}

TEST(IntervalMap, GapsGetADefaultValueFirst) {
  IntervalMap<int> map;
  Assign(map, 10, 20, 5);
  map.Update(0, 30, [](uint64_t, uint64_t, int& v) { ++v; });
  EXPECT_EQ(Dump(map), "[0,10)=1 [10,20)=6 [20,30)=1 ");
}

TEST(IntervalMap, ForEachClipsAndStops) {
  IntervalMap<int> map;
  Assign(map, 0, 10, 1);
  Assign(map, 10, 20, 2);
  EXPECT_EQ(Dump(map, 5, 15), "[5,10)=1 [10,15)=2 ");
  EXPECT_EQ(Dump(map, 20, 30), "");
  int visits = 0;
  map.ForEach(0, 20, [&](uint64_t, uint64_t, int) { return ++visits < 1; });
  EXPECT_EQ(visits, 1);
}

TEST(IntervalMap, EraseTakesPartsAway) {
  IntervalMap<int> map;
  Assign(map, 0, 30, 1);
  map.Erase(10, 20);
  EXPECT_EQ(Dump(map), "[0,10)=1 [20,30)=1 ");
  map.EraseIf([](int v) { return v == 1; });
  EXPECT_TRUE(map.empty());
}

TEST(IntervalMap, EmptyRangesChangeNothing) {
  IntervalMap<int> map;
  Assign(map, 5, 5, 1);
  Assign(map, 6, 5, 1);
  map.Erase(9, 3);
  EXPECT_TRUE(map.empty());
}

// Against one value for each byte.
TEST(IntervalMap, AgreesWithAnArray) {
  constexpr uint64_t kBytes = 64;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    IntervalMap<int> map;
    std::vector<int> model(kBytes, 0);  // 0 is no value: no operation leaves it as one.
    for (int step = 0; step < 60; ++step) {
      const uint64_t a = random() % kBytes;
      const uint64_t b = random() % (kBytes + 1);
      switch (random() % 4) {
        case 0:
          map.Erase(a, b);
          for (uint64_t i = a; i < b; ++i) model[i] = 0;
          break;
        case 1: {
          const int gone = static_cast<int>(random() % 4);
          map.EraseIf([&](int v) { return v == gone; });
          for (int& v : model) v = v == gone ? 0 : v;
          break;
        }
        default: {
          const int value = 1 + static_cast<int>(random() % 3);
          map.Update(a, b, [&](uint64_t, uint64_t, int& v) { v = v == value ? value + 1 : value; });
          for (uint64_t i = a; i < b; ++i) model[i] = model[i] == value ? value + 1 : value;
        }
      }
      ASSERT_TRUE(map.CheckInvariants().ok()) << map.CheckInvariants();
      std::vector<int> seen(kBytes, 0);
      map.ForEach(0, kBytes, [&](uint64_t from, uint64_t to, int value) {
        for (uint64_t i = from; i < to; ++i) seen[i] = value;
        return true;
      });
      ASSERT_EQ(seen, model);
    }
  }
}

}  // namespace
}  // namespace expanse::sim

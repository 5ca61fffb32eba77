#include "bench/replay/table.h"

#include <optional>

#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

TEST(Table, AlignsTextLeftAndFiguresRight) {
  Table table({"allocator", "peak\nlive", "calls"});
  table.AddRow({"expanse", "61.82 GiB", "7"});
  table.AddRow({"per-stream-segments", "1 B", "12,345"});
  EXPECT_EQ(table.ToString(),
            "                          peak\n"
            "allocator                 live   calls\n"
            "-------------------  ---------  ------\n"
            "expanse              61.82 GiB       7\n"
            "per-stream-segments        1 B  12,345\n");
}

TEST(Table, WidthsCountCharactersNotBytes) {
  Table table({"a", "b"});
  table.AddRow({"\xC3\xA9t\xC3\xA9", "1"});
  EXPECT_EQ(table.ToString(), "a    b\n---  -\n\xC3\xA9t\xC3\xA9  1\n");
}

TEST(HumanFigures, AreShortAndHaveUnits) {
  EXPECT_EQ(HumanBytes(Bytes(0)), "0 B");
  EXPECT_EQ(HumanBytes(Bytes(1023)), "1023 B");
  EXPECT_EQ(HumanBytes(KiB(1)), "1.00 KiB");
  EXPECT_EQ(HumanBytes(GiB(80)), "80.00 GiB");
  EXPECT_EQ(HumanBytes(std::optional<Bytes>()), kAbsent);
  EXPECT_EQ(HumanCount(0), "0");
  EXPECT_EQ(HumanCount(999), "999");
  EXPECT_EQ(HumanCount(1000), "1,000");
  EXPECT_EQ(HumanCount(1234567), "1,234,567");
  EXPECT_EQ(HumanCount(std::optional<uint64_t>()), kAbsent);
  EXPECT_EQ(HumanMicroseconds(7), "7.0 us");
  EXPECT_EQ(HumanMicroseconds(15230), "15.2 ms");
  EXPECT_EQ(HumanMicroseconds(590000), "0.59 s");
  EXPECT_EQ(HumanMicroseconds(std::optional<double>()), kAbsent);
  EXPECT_EQ(HumanRatio(Bytes(1005), Bytes(1000)), "1.0050");
  EXPECT_EQ(HumanRatio(Bytes(1), Bytes(0)), kAbsent);
}

}  // namespace
}  // namespace expanse::bench

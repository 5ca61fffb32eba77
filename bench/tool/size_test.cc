#include "bench/tool/size.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::tool {
namespace {

using ::testing::HasSubstr;

TEST(Size, TakesEveryUnitAndFractions) {
  const struct {
    const char* text;
    uint64_t bytes;
  } kCases[] = {
      {"1", 1},
      {"4096", 4096},
      {"41102213120", 41102213120},
      {"12B", 12},
      {"64KiB", 65536},
      {"2MiB", 2097152},
      {"80GiB", 85899345920},
      {"1TiB", 1099511627776},
      {"1PiB", 1125899906842624},
      {"3KB", 3000},
      {"5MB", 5000000},
      {"80GB", 80000000000},
      {"2TB", 2000000000000},
      {"3PB", 3000000000000000},
      {"1.5GiB", 1610612736},
      {"0.5KiB", 512},
      {".5KiB", 512},
      {"2.KiB", 2048},
      {"80 GB", 80000000000},
      {" 7 mib ", 7340032},
      {"7mIb", 7340032},
      {"1.9999B", 1},
      {"9007199254740993", 9007199254740993},  // not a double
  };
  for (const auto& test : kCases) {
    const absl::StatusOr<Bytes> size = ParseSize(test.text);
    ASSERT_TRUE(size.ok()) << test.text << ": " << size.status();
    EXPECT_EQ(size->count(), test.bytes) << test.text;
  }
}

TEST(Size, RefusesWhatIsNoneAndNamesIt) {
  for (const char* text : {"",
                           " ",
                           "GiB",
                           "-1",
                           "-1GiB",
                           "+1",
                           "1e3",
                           "0x10",
                           "1..5KiB",
                           "1.2.3",
                           "nan",
                           "inf",
                           "ten",
                           "1G",
                           "1GiBB",
                           "1 2",
                           "0",
                           "0.1B",
                           "0GiB",
                           "99999999999999999999",
                           "9000000000GiB",
                           "1,000"}) {
    const absl::StatusOr<Bytes> size = ParseSize(text);
    EXPECT_EQ(size.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(size.status().message()), HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(RelativeSize, IsASizeOrAMultiple) {
  EXPECT_EQ(ParseRelativeSize("80GB")->Of(GiB(1)), Bytes(80000000000));
  EXPECT_EQ(ParseRelativeSize("1x")->Of(GiB(1)), GiB(1));
  EXPECT_EQ(ParseRelativeSize("1.01x")->Of(GiB(100)), GiB(101));
  EXPECT_EQ(ParseRelativeSize("1x")->Of(Bytes(1)), MiB(2)) << "rounded up to what devices come in";
  EXPECT_EQ(ParseRelativeSize("1x")->Of(Bytes()), MiB(2)) << "no device is empty";
  EXPECT_GT(ParseRelativeSize("1000000x")->Of(Bytes(uint64_t{1} << 62)), Bytes(uint64_t{1} << 62));
  for (const char* text : {"x", "0x", "-1x", "1xx", "nanx", "1e9x", "2000000x"}) {
    EXPECT_EQ(ParseRelativeSize(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Count, IsAWholeNumber) {
  EXPECT_EQ(*ParseCount("0"), 0u);
  EXPECT_EQ(*ParseCount("18446744073709551615"), 18446744073709551615u);
  for (const char* text : {"", "-1", "+1", "1.5", "1e3", "many", "18446744073709551616", " 1"}) {
    EXPECT_EQ(ParseCount(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace expanse::tool

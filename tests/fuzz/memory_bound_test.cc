// The files that make each reader hold the most memory per byte, against the bound: 64 MiB plus 64 times the
// decompressed size. The constant is left out here, so that some MiB of input show the factor.

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/trace/reader.h"
#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_support.h"

namespace expanse::fuzz {
namespace {

constexpr size_t kSize = size_t{3} << 20;

std::string Repeat(absl::string_view piece, absl::string_view begin = "", absl::string_view end = "") {
  std::string text(begin);
  while (text.size() < kSize) absl::StrAppend(&text, piece);
  absl::StrAppend(&text, end);
  return text;
}

std::string Numbered(const std::function<std::string(int)>& row) {
  std::string text = "op,id,bytes,stream\n";
  for (int i = 0; text.size() < kSize; ++i) text += row(i);
  return text;
}

// From a file, so that the input's own growth counts too. Returns what the reader said.
absl::Status ExpectWithinBound(const char* what, const std::string& text) {
  SCOPED_TRACE(what);
  const std::string path = testing::TempDir() + "expanse_memory_bound_test";
  std::ofstream(path, std::ios::binary) << text;
  size_t peak = 0;
  absl::Status status;
  {
    const MemoryMeter meter;
    const absl::StatusOr<bench::LoadedTrace> loaded = bench::ReadTrace(path);
    peak = meter.peak();
    status = loaded.status();
  }
  std::remove(path.c_str());
  const double factor = static_cast<double>(peak) / static_cast<double>(text.size());
  EXPECT_LE(factor, 64.0);
  EXPECT_GE(factor, 1.0) << "the meter sees nothing";
  std::printf("%-44s %5.1f bytes held per byte\n", what, factor);
  return status;
}

TEST(MemoryBound, BaseFormat) {
  const std::string header = "op,id,bytes,stream\n";
  EXPECT_TRUE(ExpectWithinBound("blank lines", Repeat("\n", header)).ok());
  EXPECT_TRUE(ExpectWithinBound("waits", Repeat("w,,,0\n", header)).ok());
  EXPECT_TRUE(ExpectWithinBound("waits after an extra column", Repeat("w,,,0\n", header + "w,,,0,x\n")).ok());
  EXPECT_TRUE(ExpectWithinBound("waits, each with an extra column", Repeat("w,,,0,x\n", header)).ok());
  EXPECT_TRUE(
      ExpectWithinBound("waits, each with a long extra column", Repeat("w,,,0,0123456789abcdef\n", header)).ok());
  EXPECT_TRUE(ExpectWithinBound("marks", Repeat("m,a,,\n", header)).ok());
  EXPECT_TRUE(ExpectWithinBound("marks with long labels", Repeat("m,0123456789abcdef,,\n", header)).ok());
  EXPECT_TRUE(ExpectWithinBound("marks with extra columns", Repeat("m,a,,,x\n", header)).ok());
  EXPECT_TRUE(ExpectWithinBound("allocations", Numbered([](int i) { return absl::StrCat("a,", i, ",1,0\n"); })).ok());
  EXPECT_TRUE(ExpectWithinBound("allocations and frees", Repeat("a,0,1,0\nf,0,,0\n", header)).ok());
  EXPECT_TRUE(ExpectWithinBound("names of columns", Repeat(",a", "op,id,bytes,stream")).ok());
}

TEST(MemoryBound, Pickle) {
  const std::string begin("\x80\x04", 2);
  EXPECT_FALSE(ExpectWithinBound("empty lists", Repeat("]", begin, ".")).ok());
  EXPECT_FALSE(ExpectWithinBound("marks", Repeat("(", begin, "N.")).ok());
  EXPECT_FALSE(ExpectWithinBound("memoised lists", Repeat("]\x94", begin, ".")).ok());
  EXPECT_FALSE(ExpectWithinBound("lists of an empty list", Repeat("]]a", begin, ".")).ok());
  EXPECT_FALSE(ExpectWithinBound("lists nested", std::string(begin + std::string(kSize / 2, ']') +
                                                             std::string(kSize / 2 - 1, 'a') + "."))
                   .ok());
  EXPECT_FALSE(ExpectWithinBound("one list of many", Repeat("]", begin + "](", "e.")).ok());
  EXPECT_FALSE(ExpectWithinBound("tuples of one", Repeat("\x85", begin + "N", ".")).ok());
  EXPECT_FALSE(ExpectWithinBound("duplicates", Repeat("2", begin + "N", ".")).ok());
}

TEST(MemoryBound, Snapshot) {
  // {'device_traces': [[entry, ...]], 'segments': [...]} whose entries are as short as the accounting lets them be.
  const std::string begin(
      "\x80\x04}(\x8c\x0d"
      "device_traces](](",
      23);
  const std::string end("ee\x8c\x08segments]u.", 15);
  const std::string keys(
      "\x8c\x06"
      "action\x94\x8c\x05"
      "alloc\x94\x8c\x04"
      "addr\x94\x8c\x04size\x94\x8c\x06stream\x94",
      40);
  std::string honest = begin;
  for (int i = 0; honest.size() < kSize; ++i) {
    std::string address;
    for (int shift = 0; shift < 32; shift += 8) address += static_cast<char>((i + 1) >> shift & 0xff);
    honest += "}(";
    honest += i == 0 ? keys.substr(0, 17) : std::string("h\0h\1", 4);
    honest += (i == 0 ? keys.substr(17, 7) : std::string("h\2", 2)) + "J" + address;
    honest += (i == 0 ? keys.substr(24, 7) : std::string("h\3", 2)) + "K\1";
    honest += (i == 0 ? keys.substr(31, 9) : std::string("h\4", 2)) + std::string("K\0u", 3);
  }
  honest += end;
  EXPECT_EQ(ExpectWithinBound("entries as short as can be", honest), absl::OkStatus());

  std::string shared = begin +
                       "}(\x8c\x06"
                       "action\x8c\x05"
                       "alloc\x8c\x04"
                       "addrK\1\x8c\x04sizeK\1\x8c\x06streamK";
  shared += std::string("\0u\x94", 3);
  EXPECT_FALSE(ExpectWithinBound("one entry over and over", Repeat(absl::string_view("h\0", 2), shared, end)).ok());
}

TEST(MemoryBound, Binary) { EXPECT_FALSE(ExpectWithinBound("text without any line break", Repeat("x")).ok()); }

}  // namespace
}  // namespace expanse::fuzz

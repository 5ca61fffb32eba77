#include "bench/tool/report_tables.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bench::ReplayResult Result(const std::string& allocator) {
  bench::ReplayResult result;
  result.allocator = allocator;
  result.capacity = GiB(80);
  result.events = 1000;
  result.peak_live = GiB(10);
  result.peak_reserved = GiB(11);
  result.modelled_driver_us = 1500;
  return result;
}

TEST(CompareTable, SaysModelledForModelledTimeAndShowsAbsentFiguresAsAbsent) {
  const std::string table = CompareTable(std::vector<bench::ReplayResult>{Result("expanse")});
  EXPECT_THAT(table, HasSubstr("modelled"));
  EXPECT_THAT(table, HasSubstr("1.5 ms"));
  EXPECT_THAT(table, HasSubstr("1.1000"));
  EXPECT_THAT(table, Not(HasSubstr("measured")));
  EXPECT_THAT(table, Not(HasSubstr("smallest")));
  EXPECT_THAT(table, Not(HasSubstr("hazards")));
  EXPECT_THAT(table, Not(HasSubstr("reserved but"))) << "nothing failed";
}

TEST(CompareTable, TellsWhereMemoryRanOut) {
  bench::ReplayResult failed = Result("caching");
  failed.out_of_memory = true;
  failed.failed_at_event = 123456;
  failed.failed_in_mark = "step3";
  failed.failed_request = MiB(96);
  failed.unused_at_failure = GiB(2);
  failed.failed_allocations = 1;
  const std::string table = CompareTable(std::vector<bench::ReplayResult>{Result("expanse"), failed});
  EXPECT_THAT(table, HasSubstr("event 123,456 (step3)"));
  EXPECT_THAT(table, HasSubstr("96.00 MiB"));
  EXPECT_THAT(table, HasSubstr("2.00 GiB"));
}

TEST(FitTable, SaysWhereNoCapacityRuns) {
  bench::ReplayResult fits = Result("expanse");
  fits.smallest_capacity = GiB(10) + MiB(2);
  fits.live_at_smallest = GiB(10);
  const std::string table = FitTable(std::vector<bench::ReplayResult>{fits, Result("naive")}, GiB(160));
  EXPECT_THAT(table, HasSubstr("1.0002"));
  EXPECT_THAT(table, HasSubstr("none up to 160.00 GiB"));
}

TEST(ReplayTable, ListsMarksUpToABound) {
  bench::ReplayResult result = Result("expanse");
  for (int i = 0; i < 100; ++i) result.marks.push_back({"step" + std::to_string(i), 0, 7, 1.0});
  const std::string table = ReplayTable(result);
  EXPECT_THAT(table, HasSubstr("step39"));
  EXPECT_THAT(table, Not(HasSubstr("step40 ")));
  EXPECT_THAT(table, HasSubstr("60 more marks"));
}

}  // namespace
}  // namespace expanse::tool

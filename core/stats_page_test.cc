#include "core/stats_page.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(StatsPage, SaysWhereReservedMemoryIs) {
  Stats stats;
  stats.reserved.current = MiB(100);
  stats.reserved.peak = MiB(120);
  stats.allocated.current = MiB(60);
  stats.pending.current = MiB(10);
  stats.idle.current = MiB(26);
  EXPECT_THAT(StatsPage(stats), StartsWith("---- Where reserved memory is\n"
                                           "reserved                100.00 MiB (104857600 bytes), peak 120.00 MiB "
                                           "(125829120 bytes)\n"
                                           "allocated               60.00 MiB (62914560 bytes), 60 %\n"
                                           "pending                 10.00 MiB (10485760 bytes), 10 %\n"
                                           "idle                    26.00 MiB (27262976 bytes), 26 %\n"
                                           "partly used, lost       4.00 MiB (4194304 bytes), 4 %\n"));
}

TEST(StatsPage, HasEveryCount) {
  Stats stats;
  stats.failed_allocations = 11;
  stats.waits = 13;
  stats.process = {480000, 5, TiB(32), MiB(512)};
  stats.chunks_refilled = 17;
  stats.rungs.other_class = 23;
  stats.unforced_moves.spent = std::chrono::milliseconds(3);
  stats.unforced_moves.allowed = std::chrono::milliseconds(4);
  stats.gpu_stalls.time = std::chrono::milliseconds(5);
  const std::string page = StatsPage(stats);
  EXPECT_THAT(page, HasSubstr("failed_allocations      11\n"));
  EXPECT_THAT(page, HasSubstr("waits                   13\n"));
  EXPECT_THAT(page, HasSubstr("process.handles_taken   5\n"));
  EXPECT_THAT(page, HasSubstr("process.handles_limit   480000\n"));
  EXPECT_THAT(page, HasSubstr("process.addresses_taken 512.00 MiB (536870912 bytes)\n"));
  EXPECT_THAT(page, HasSubstr("process.addresses_limit 32.00 TiB (35184372088832 bytes)\n"));
  EXPECT_THAT(page, HasSubstr("chunks_refilled         17\n"));
  EXPECT_THAT(page, HasSubstr("rungs.other_class       23\n"));
  EXPECT_THAT(page, HasSubstr("unforced_moves.spent    3000 us\n"));
  EXPECT_THAT(page, HasSubstr("unforced_moves.allowed  4000 us\n"));
  EXPECT_THAT(page, HasSubstr("gpu_stalls.time         5000 us\n"));
  EXPECT_THAT(page, HasSubstr("partly used, lost       0 bytes, 0 %\n"));
}

}  // namespace
}  // namespace expanse

// What ends a replay with an error.

#include <string>

#include "absl/status/statusor.h"
#include "bench/replay/replayer_fixture.h"
#include "bench/replay/test_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::HasSubstr;

TEST(ReplayErrors, TouchFindsABlockThatAnotherOverwrote) {
  ReplayOptions options = Options();
  options.touch = true;
  // Both are live and at the same address: the second write destroys the first block.
  const std::string freed =
      Error("a,41,1000,0\na,42,1000,0\nf,42,,0\nf,41,,0\n", options, Scripted<CarelessAllocator>(kArena, kArena));
  EXPECT_THAT(freed, HasSubstr("block 41"));
  EXPECT_THAT(freed, HasSubstr("event 3"));
  EXPECT_THAT(freed, HasSubstr("corrupted at offset 0"));

  const std::string live = Error("a,41,1000,0\na,42,1000,0\n", options, Scripted<CarelessAllocator>(kArena, kArena));
  EXPECT_THAT(live, HasSubstr("block 41"));
  EXPECT_THAT(live, HasSubstr("live after event 2"));
}

TEST(ReplayErrors, ErrorsSayWhereTheReplayWas) {
  struct Refusing final : ScriptedAllocator {
    using ScriptedAllocator::ScriptedAllocator;
    absl::Status Free(DeviceAddress, StreamHandle) override { return absl::InternalError("refused"); }
  };
  const std::string error = Error("m,step0,,\na,77,4096,0\nf,77,,0\n", Options(), Scripted<Refusing>(kArena, kArena));
  EXPECT_EQ(error, "scripted, test.csv, event 1, free of block 77 of 4.00 KiB (4096 bytes): refused");
}

TEST(ReplayErrors, ReportsABrokenInvariant) {
  struct Inconsistent final : ScriptedAllocator {
    using ScriptedAllocator::ScriptedAllocator;
    absl::Status CheckInvariants() const override { return absl::InternalError("inconsistent"); }
  };
  ReplayOptions options = Options();
  EXPECT_THAT(Error("a,1,1,0\n", options, Scripted<Inconsistent>(kArena, kArena)), HasSubstr("inconsistent"));
  options.check_invariants = false;
  (void)ReplayRows("a,1,1,0\n", options, Scripted<Inconsistent>(kArena, kArena));
}

TEST(ReplayErrors, ReportsWhatAnAllocatorLeavesBehind) {
  struct Leaking final : ScriptedAllocator {
    using ScriptedAllocator::ScriptedAllocator;
    DeviceAddress Place(Bytes size) override {
      abi::DevicePtr leaked = 0;
      EXPECT_EQ(driver_.mem_alloc(&leaked, 512), abi::kSuccess);
      return ScriptedAllocator::Place(size);
    }
  };
  EXPECT_THAT(Error("a,1,1,0\n", Options(), Scripted<Leaking>(kArena, kArena)),
              HasSubstr("not given back to the driver"));
}

TEST(ReplayErrors, RefusesOptionsThatMakeNoSense) {
  ReplayOptions options = Options();
  options.repeat = 0;
  EXPECT_THAT(Error("a,1,1,0\n", options, Scripted<ScriptedAllocator>(kArena, kArena)), HasSubstr("repeat"));
  options.repeat = uint64_t{1} << 63;
  EXPECT_THAT(Error("a,1,1,0\nf,1,,0\n", options, Scripted<ScriptedAllocator>(kArena, kArena)),
              HasSubstr("repeat is 9223372036854775808, expected at most 2305843009213693952"));
  options.repeat = 5'000'001;
  EXPECT_THAT(Error("m,x,,\nm,y,,\n", options, Scripted<ScriptedAllocator>(kArena, kArena)),
              HasSubstr("repeat is 5000001, expected at most 5000000"));
  options.repeat = 1;
  options.lag = 1;
  options.cuda_device = DeviceOrdinal(0);
  EXPECT_THAT(Error("a,1,1,0\n", options, Scripted<ScriptedAllocator>(kArena, kArena)), HasSubstr("lag"));
}

TEST(ReplayErrors, UnknownAllocatorsAreNamed) {
  ReplayOptions options = Options();
  options.allocator = "nothing";
  const absl::StatusOr<ReplayResult> result = Replay(TraceOf("a,1,1,0\n"), options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace expanse::bench

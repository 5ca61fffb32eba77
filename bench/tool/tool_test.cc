// The real binary: what it prints, where, and what it exits with, where it is used rightly.

#include <filesystem>
#include <string>

#include "bench/tool/tool_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace expanse::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

TEST_F(ToolTest, TracesAndDevicesOfExtremeSizesRunOutOfMemoryAtMost) {
  Write("huge.csv", "op,id,bytes,stream\na,1,4611686018427387904,0\nf,1,,0\n");
  const Outcome huge = Shell("expanse fit huge.csv");
  EXPECT_EQ(huge.exit_status, 1) << huge.err;
  EXPECT_THAT(huge.out, HasSubstr("none up to 1.00 PiB"));
  EXPECT_EQ(Shell("expanse compare trace.csv --capacity 2MiB").exit_status, 0);
  EXPECT_EQ(Shell("expanse replay trace.csv --capacity 2MiB --allocator preallocated").exit_status, 1);
  EXPECT_THAT(Error("expanse replay trace.csv --costs /dev/zero"), HasSubstr("1048576 bytes or more"));
  EXPECT_THAT(Error("expanse replay trace.csv --costs ."), HasSubstr("cannot read '.'"));
  Write("none.csv", "op,id,bytes,stream\nm,step0,,\n");
  EXPECT_EQ(Shell("expanse replay none.csv --capacity 1x").exit_status, 0);
  EXPECT_EQ(Shell("expanse fit none.csv").exit_status, 0);
}

TEST_F(ToolTest, HelpHasExamplesForEachCommand) {
  const Outcome top = Shell("expanse --help");
  EXPECT_EQ(top.exit_status, 0);
  for (const char* command : {"replay", "compare", "fit", "convert", "generate", "inspect", "merge", "doctor"}) {
    EXPECT_THAT(top.out, HasSubstr(command));
  }
  for (const char* command :
       {"replay", "compare", "fit", "convert", "generate", "inspect", "generate llama", "generate random"}) {
    const Outcome help = Shell("expanse " + std::string(command) + " --help");
    EXPECT_EQ(help.exit_status, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Example")) << command;
    EXPECT_EQ(help.err, "") << command;
  }
  EXPECT_THAT(Shell("expanse --version").out, StartsWith("expanse "));
}

TEST_F(ToolTest, ReplayPrintsATableAndExitsZero) {
  const Outcome outcome = Shell("expanse replay trace.csv --capacity 1GiB");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "") << "no progress bar off a terminal";
  EXPECT_THAT(outcome.out, HasSubstr("trace.csv: 6 events, peak live 3.82 MiB, 2 streams"));
  EXPECT_THAT(outcome.out, HasSubstr("modelled driver time"));
  EXPECT_THAT(outcome.out, HasSubstr("step1"));
}

TEST_F(ToolTest, ReplayExitsOneWhereMemoryRunsOut) {
  const Outcome outcome = Shell("expanse replay trace.csv --allocator naive --capacity 3MiB");
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("event 3 (step1)"));
  EXPECT_THAT(outcome.out, HasSubstr("3.81 MiB")) << "the request that failed";
  EXPECT_THAT(outcome.err, HasSubstr("warning"));
  EXPECT_EQ(Shell("expanse replay trace.csv --allocator naive --capacity 3MiB --keep-going").exit_status, 1);
  EXPECT_EQ(Shell("expanse replay trace.csv --capacity 2MiB").exit_status, 1);
}

TEST_F(ToolTest, JsonHasTheFiguresAndTheTableStaysAway) {
  const Outcome outcome = Shell("expanse replay trace.csv --allocator naive --capacity 1GiB --json -");
  EXPECT_EQ(outcome.exit_status, 0);
  ASSERT_TRUE(Json::accept(outcome.out)) << outcome.out;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json.at("trace").at("peak_live_bytes"), 4001000);
  EXPECT_EQ(json.at("device").at("kind"), "simulated");
  const Json& result = json.at("results").at(0);
  EXPECT_EQ(result.at("allocator"), "naive");
  EXPECT_EQ(result.at("events"), 6);
  EXPECT_EQ(result.at("peak_live_bytes"), 4001000);
  EXPECT_EQ(result.at("capacity_bytes"), 1073741824);
  EXPECT_EQ(result.at("driver_calls").at("cuMemAlloc_v2"), 3);
  EXPECT_EQ(result.at("driver_calls").at("cuMemFree_v2"), 3);
  EXPECT_EQ(result.at("out_of_memory"), false);
  EXPECT_TRUE(result.at("failed_at_event").is_null());
  EXPECT_TRUE(result.at("measured_driver_us").is_null());
  EXPECT_TRUE(result.at("chunks_created").is_null());
  EXPECT_TRUE(result.at("smallest_capacity_bytes").is_null());
  EXPECT_EQ(result.at("driver_calls_per_mark").size(), 2u);

  const Outcome to_file = Shell("expanse compare trace.csv --json results.json --svg memory.svg");
  EXPECT_EQ(to_file.exit_status, 0) << to_file.err;
  EXPECT_THAT(to_file.out, HasSubstr("per-stream-segments"));
  EXPECT_EQ(Json::parse(Read("results.json")).at("results").size(), 5u);
  EXPECT_THAT(Read("memory.svg"), StartsWith("<svg"));
}

TEST_F(ToolTest, CompareHasOneRowForEachAllocator) {
  const Outcome outcome = Shell("expanse compare trace.csv --capacity 1.5x --fit");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err << "running out of memory is a result here";
  for (const char* allocator : {"expanse ", "naive ", "caching ", "preallocated ", "per-stream-segments "}) {
    EXPECT_THAT(outcome.out, HasSubstr(allocator));
  }
  EXPECT_THAT(outcome.out, HasSubstr("smallest"));
  // The ratio is of the replay on the smallest capacity, not of the one that ran out of memory: 4 MiB to 4,001,000
  // bytes.
  const Outcome short_of_memory = Shell("expanse compare trace.csv --capacity 3MiB --fit --allocators naive");
  EXPECT_THAT(short_of_memory.out, HasSubstr("1.0483"));
  EXPECT_THAT(short_of_memory.out, HasSubstr("event 3 (step1)"));
}

TEST_F(ToolTest, FitFindsTheSmallestCapacity) {
  const Outcome outcome = Shell("expanse fit trace.csv --allocators naive --json -");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  // 4,001,000 bytes, rounded up to 2 MiB.
  EXPECT_EQ(Json::parse(outcome.out).at("results").at(0).at("smallest_capacity_bytes"), 4 << 20);
  const Outcome none = Shell("expanse fit trace.csv --allocators naive,expanse --capacity 4MiB");
  EXPECT_EQ(none.exit_status, 1) << none.err;
  EXPECT_THAT(none.out, HasSubstr("none up to 4.00 MiB"));
}

TEST_F(ToolTest, OptionsReachTheReplay) {
  EXPECT_EQ(Shell("expanse replay trace.csv --capacity 1GiB --repeat 3 --lag 2 --growth frugal --chunk 4MiB "
                  "--limit 2x --costs default")
                .exit_status,
            0);
  EXPECT_EQ(Shell("expanse replay trace.csv --capacity 64MiB --touch --seed 1").exit_status, 0);
  Write("oom.csv", "op,id,bytes,stream\na,1,1000,0\nm,oom_500000000,,\n");
  EXPECT_EQ(Shell("expanse replay oom.csv --capacity 64MiB").exit_status, 0);
  EXPECT_EQ(Shell("expanse replay oom.csv --capacity 64MiB --retry-oom").exit_status, 1);
  EXPECT_EQ(Shell("expanse replay oom.csv --capacity 1GiB --retry-oom").exit_status, 0);
}

TEST_F(ToolTest, ARecordedReplayIsTheTraceThatWasReplayed) {
  EXPECT_EQ(Shell("expanse generate random --events 400 --live 32MiB --max-size 4MiB --seed 5 -o random.csv && "
                  "expanse replay random.csv --capacity 1GiB --record again.csv")
                .exit_status,
            0);
  // Ids count allocations from 0, as the generator's do.
  EXPECT_EQ(Shell("cmp random.csv again.csv").out, "");
  Write("steps.csv",
        "op,id,bytes,stream\nm,step0,,\na,0,1000000,0\na,1,2000000,1\nu,0,,1\nm,step 1/b,,\nf,0,,0\na,2,7,2\nf,1,,2\n");
  const Outcome piped = Shell("expanse replay steps.csv --record - --lag 3");
  EXPECT_EQ(piped.exit_status, 0) << piped.err;
  EXPECT_EQ(piped.out, Read("steps.csv"));
  EXPECT_EQ(Shell("expanse replay steps.csv --record steps.csv.gz && expanse convert steps.csv.gz -").exit_status, 0);
  EXPECT_THAT(Error("expanse replay trace.csv --record - --json -"), HasSubstr("standard output"));
}

TEST_F(ToolTest, ConvertKeepsTheTrace) {
  EXPECT_EQ(Shell("expanse convert trace.csv copy.csv.gz && expanse convert copy.csv.gz copy.csv").exit_status, 0);
  EXPECT_EQ(Read("copy.csv"), kTrace);
  const Outcome piped = Shell("cat copy.csv.gz | expanse convert - -");
  EXPECT_EQ(piped.out, kTrace);
  EXPECT_EQ(piped.exit_status, 0);
}

TEST_F(ToolTest, GenerateWritesATraceThatReplays) {
  const Outcome outcome =
      Shell("expanse generate random --events 200 --live 64MiB --max-size 8MiB --seed 3 | expanse replay - --json -");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out).at("results").at(0).at("events"), 200);
  EXPECT_EQ(
      Shell("expanse generate llama --steps 1 --acc 8 -o a.csv && expanse generate -o b.csv llama --steps 1 --acc 8 "
            "&& cmp a.csv b.csv")
          .exit_status,
      0);
}

TEST_F(ToolTest, InspectSaysWhatATraceHolds) {
  const Outcome text = Shell("expanse inspect trace.csv");
  EXPECT_EQ(text.exit_status, 0);
  EXPECT_NE(text.out, "");
  const Outcome json = Shell("cat trace.csv | expanse inspect - --json -");
  EXPECT_TRUE(Json::accept(json.out)) << json.out;
}

TEST_F(ToolTest, AReaderThatGoesAwayIsNoError) {
  const Outcome outcome = Shell(
      "set -o pipefail; expanse generate llama --steps 1 --acc 8 | head -1 > head.txt; echo ${PIPESTATUS[0]} > "
      "status.txt");
  EXPECT_EQ(Read("head.txt"), "op,id,bytes,stream\n");
  EXPECT_EQ(Read("status.txt"), "0\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(ToolTest, EverySharedTraceCompares) {
  const std::filesystem::path traces = std::filesystem::path(EXPANSE_SHARED_DIR) / "traces";
  if (!std::filesystem::exists(traces)) GTEST_SKIP() << "no traces at " << traces;
  for (const auto& entry : std::filesystem::directory_iterator(traces)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".csv") == std::string::npos && name.find(".pickle") == std::string::npos) continue;
    const Outcome outcome = Shell("expanse compare '" + entry.path().string() + "' --json -");
    EXPECT_EQ(outcome.exit_status, 0) << name << ": " << outcome.err;
    if (!Json::accept(outcome.out)) continue;
    const Json report = Json::parse(outcome.out);
    for (const Json& result : report.at("results")) {
      if (result.at("out_of_memory") == true) continue;
      EXPECT_EQ(result.at("peak_live_bytes"), report.at("trace").at("peak_live_bytes")) << name;
      EXPECT_GE(result.at("peak_reserved_bytes"), result.at("peak_live_bytes")) << name << result.at("allocator");
      EXPECT_EQ(result.at("hazards"), 0) << name;
    }
  }
}

}  // namespace
}  // namespace expanse::tool

// The real binary: what it prints, where, and what it exits with.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace expanse::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr const char* kTrace =
    "op,id,bytes,stream\n"
    "m,step0,,\n"
    "a,1,3000000,0\n"
    "a,2,1000,1\n"
    "f,1,,0\n"
    "m,step1,,\n"
    "a,3,4000000,0\n"
    "f,3,,0\n"
    "f,2,,1\n";

struct Outcome {
  int exit_status = -1;
  std::string out, err;
};

class ToolTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) /
        ("tool_test." + std::to_string(getpid()) + "." + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    Write("trace.csv", kTrace);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(Path(name)) << text; }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Runs a shell command in the folder; `expanse` in it is the binary.
  Outcome Shell(const std::string& command) const {
    const std::string script = "cd '" + folder_.string() +
                               "' && expanse() { '" EXPANSE_TOOL_BINARY "' \"$@\"; } && { " + command +
                               "\n} >stdout.txt 2>stderr.txt";
    const int status = std::system(("bash -c" + Quote(script)).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("stdout.txt"), Read("stderr.txt")};
  }
  // For usage and input errors: exit status 2, nothing on the standard output, a message that starts with the name of
  // the command. Returns the message.
  std::string Error(const std::string& command) const {
    const Outcome outcome = Shell(command);
    EXPECT_EQ(outcome.exit_status, 2) << command;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_THAT(outcome.err, StartsWith("expanse")) << command;
    EXPECT_THAT(outcome.err, Not(HasSubstr("terminate"))) << command;
    return outcome.err;
  }

 private:
  // As an argument of /bin/sh.
  static std::string Quote(const std::string& text) {
    std::string quoted = " '";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  }

  std::filesystem::path folder_;
};

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

TEST_F(ToolTest, UnknownThingsAreNamedWithTheNearestKnownOne) {
  EXPECT_THAT(Error("expanse comapre trace.csv"), HasSubstr("'comapre'; did you mean 'compare'?"));
  EXPECT_THAT(Error("expanse --hepl"), HasSubstr("unknown option '--hepl'; did you mean '--help'?"));
  EXPECT_THAT(Error("expanse replay trace.csv --capacty 1GiB"),
              HasSubstr("unknown option --capacty; did you mean '--capacity'?"));
  EXPECT_THAT(Error("expanse replay trace.csv --capacty=1GiB"), HasSubstr("did you mean '--capacity'?"));
  EXPECT_THAT(Error("expanse replay trace.csv --allocator expnase"),
              HasSubstr("unknown allocator 'expnase'; there are expanse, naive, caching"));
  EXPECT_THAT(Error("expanse replay trace.csv --allocator expnase"), HasSubstr("did you mean 'expanse'?"));
  EXPECT_THAT(Error("expanse compare trace.csv --allocators expanse,cahcing"), HasSubstr("did you mean 'caching'?"));
  EXPECT_THAT(Error("expanse replay tarce.csv"), HasSubstr("did you mean 'trace.csv'?"));
  EXPECT_THAT(Error("expanse inspect tarce.csv"), HasSubstr("tarce.csv"));
  EXPECT_THAT(Error("expanse replay trace.csv --growth lasy"), HasSubstr("did you mean 'lazy'?"));
  EXPECT_THAT(Error("expanse replay trace.csv --growth balance"), HasSubstr("did you mean 'balanced'?"));
  EXPECT_THAT(Error("expanse replay trace.csv --costs defualt"), HasSubstr("did you mean 'default'?"));
  EXPECT_THAT(Error("expanse generate lama"), HasSubstr("did you mean 'llama'?"));
  EXPECT_THAT(Error("expanse generate llama --release-grad on"), HasSubstr("did you mean '--release-grads'?"));
  EXPECT_THAT(Error("expanse replay trace.csv other.csv"), HasSubstr("unexpected argument 'other.csv'"));
}

TEST_F(ToolTest, BadValuesAreNamed) {
  EXPECT_THAT(Error("expanse replay trace.csv --capacity 1Gib2"), HasSubstr("--capacity: '1Gib2'"));
  EXPECT_THAT(Error("expanse replay trace.csv --lag many"), HasSubstr("--lag: 'many'"));
  EXPECT_THAT(Error("expanse replay trace.csv --repeat 0"), HasSubstr("--repeat"));
  EXPECT_THAT(Error("expanse replay trace.csv --device gpu"), HasSubstr("--device: 'gpu'"));
  for (const char* option : {"--capacity", "--lag", "--growth", "--allocator", "--json", "--costs"}) {
    EXPECT_THAT(Error(std::string("expanse replay trace.csv ") + option),
                HasSubstr(std::string(option) + ": expected a value after it"));
  }
  for (const char* command : {"replay", "compare", "fit"}) {
    for (const char* size : {"80", "1KiB", "1.99MiB"}) {
      EXPECT_THAT(Error(std::string("expanse ") + command + " trace.csv --capacity " + size),
                  HasSubstr(std::string("--capacity: '") + size + "' is "));
    }
  }
  EXPECT_THAT(Error("expanse replay trace.csv --growth greedy"), HasSubstr("'greedy' is none of lazy|balanced|frugal"));
  Write("empty", "");
  for (const char* command : {"replay", "compare", "fit"}) {
    EXPECT_THAT(Error(std::string("expanse ") + command + " trace.csv --costs empty"),
                HasSubstr("--costs: empty: no cost is given"));
  }
  EXPECT_THAT(Error("expanse generate llama --rank 9"), HasSubstr("rank"));
  EXPECT_THAT(Error("expanse generate llama --attn fast"), HasSubstr("'fast' is none of flash|naive"));
  EXPECT_THAT(Error("expanse generate random --events 3"), HasSubstr("events"));
  EXPECT_THAT(Error("expanse replay trace.csv --max-input 10B"), HasSubstr("trace.csv"));
  EXPECT_THAT(Error("expanse replay --capacity 1GiB"), HasSubstr("no trace is named"));
  EXPECT_THAT(Error("expanse convert trace.csv"), HasSubstr("no output is named"));
  EXPECT_THAT(Error("expanse generate"), HasSubstr("no kind is named"));
  EXPECT_THAT(Error("expanse replay trace.csv --json - --svg -"), HasSubstr("standard output"));
  EXPECT_THAT(Error("expanse compare trace.csv --allocators ,"), HasSubstr("no allocator is named"));
  EXPECT_THAT(Error("expanse replay trace.csv --device cuda:0 --lag 3"), HasSubstr("--lag"));
  EXPECT_THAT(Error("expanse fit trace.csv --device cuda:0"), HasSubstr("simulated"));
  const Outcome nothing = Shell("expanse");
  EXPECT_EQ(nothing.exit_status, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(nothing.err, HasSubstr("replay"));
}

TEST_F(ToolTest, WhatALaterVersionBringsSaysSo) {
  for (const char* command :
       {"expanse merge a.json", "expanse doctor", "expanse replay trace.csv --html r.html",
        "expanse compare trace.csv --perfetto p.json", "expanse compare trace.csv --what-if growth=lazy,frugal",
        "expanse replay trace.csv --allocator driver-pool", "expanse compare trace.csv --allocators driver-pool",
        "expanse generate fsdp", "expanse convert trace.csv out.pickle"}) {
    EXPECT_THAT(Error(command), HasSubstr("comes in a later version")) << command;
  }
}

TEST_F(ToolTest, InputErrorsNameFileLineAndValue) {
  Write("bad.csv", "op,id,bytes,stream\na,1,-5,0\n");
  for (const char* command : {"replay", "compare", "fit", "inspect"}) {
    const std::string error = Error(std::string("expanse ") + command + " bad.csv");
    EXPECT_THAT(error, HasSubstr("bad.csv"));
    EXPECT_THAT(error, HasSubstr("2"));
    EXPECT_THAT(error, HasSubstr("-5"));
  }
  EXPECT_THAT(Error("expanse replay ."), HasSubstr("."));
  EXPECT_THAT(Error("expanse convert - out.csv < /dev/null"), HasSubstr("standard input"));
  Write("costs.txt", "cuMemCreate one two three\n");
  EXPECT_THAT(Error("expanse replay trace.csv --costs costs.txt"), HasSubstr("costs.txt"));
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
                  "--limit 2x --costs default --seed 1")
                .exit_status,
            0);
  EXPECT_EQ(Shell("expanse replay trace.csv --capacity 64MiB --touch").exit_status, 0);
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
  EXPECT_THAT(Error("expanse replay trace.csv --allocator naive --record r.csv"), HasSubstr("'naive' records nothing"));
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

TEST_F(ToolTest, OutputThatCannotBeWrittenIsAnError) {
  EXPECT_THAT(Error("expanse replay trace.csv --json no/such/folder.json"), HasSubstr("'no/such/folder.json'"));
  EXPECT_THAT(Error("expanse compare trace.csv --svg ."), HasSubstr("'.'"));
  EXPECT_THAT(Error("expanse convert trace.csv no/such.csv"), HasSubstr("no/such.csv"));
  EXPECT_THAT(Error("expanse generate random -o no/such.csv"), HasSubstr("no/such.csv"));
  const Outcome full = Shell("expanse inspect trace.csv > /dev/full");
  EXPECT_EQ(full.exit_status, 2);
  EXPECT_THAT(full.err, HasSubstr("standard output"));
}

TEST_F(ToolTest, AReaderThatGoesAwayIsNoError) {
  const Outcome outcome = Shell(
      "set -o pipefail; expanse generate llama --steps 1 --acc 8 | head -1 > head.txt; echo ${PIPESTATUS[0]} > "
      "status.txt");
  EXPECT_EQ(Read("head.txt"), "op,id,bytes,stream\n");
  EXPECT_EQ(Read("status.txt"), "0\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(ToolTest, AMissingDriverIsAnError) {
  const Outcome outcome = Shell("expanse replay trace.csv --device cuda:0");
  if (outcome.exit_status == 0) GTEST_SKIP() << "a real device is there";
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_EQ(outcome.out, "");
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

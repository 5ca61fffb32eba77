// The real binary: what it says of mistakes.

#include <string>

#include "bench/tool/tool_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::tool {
namespace {

using ::testing::HasSubstr;

using ToolErrorsTest = ToolTest;

TEST_F(ToolErrorsTest, UnknownThingsAreNamedWithTheNearestKnownOne) {
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

TEST_F(ToolErrorsTest, BadValuesAreNamed) {
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
  const Outcome nothing = Shell("expanse");
  EXPECT_EQ(nothing.exit_status, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(nothing.err, HasSubstr("replay"));
}

TEST_F(ToolErrorsTest, AnOptionThatHasNoEffectIsWarnedOf) {
  const struct {
    const char* command;
    const char* warning;
  } kWarned[] = {
      // By the kind of input.
      {"replay trace.csv --snapshot-device 3",
       "trace.csv: --snapshot-device: '3' has no effect on a trace in the base"},
      {"compare trace.csv --snapshot-device 0", "--snapshot-device: '0'"},
      {"fit trace.csv --snapshot-device 1", "--snapshot-device: '1'"},
      {"inspect trace.csv --snapshot-device 1", "--snapshot-device: '1'"},
      {"convert trace.csv copy.csv --snapshot-device 1", "--snapshot-device: '1'"},
      // By the allocators.
      {"replay trace.csv --allocator caching --growth lazy",
       "--growth: 'lazy' has no effect on caching; it is for exp"},
      {"compare trace.csv --allocators naive,caching --chunk 4MiB",
       "'4MiB' has no effect on naive, caching; it is for"},
      {"fit trace.csv --allocators naive --prewarm 1GiB", "--prewarm: '1GiB' has no effect on naive"},
      {"replay trace.csv --prealloc 1GiB", "--prealloc: '1GiB' has no effect on expanse; it is for preallocated"},
      {"compare trace.csv --allocators expanse,caching --prealloc 1GiB", "--prealloc: '1GiB'"},
      // By other options.
      {"replay trace.csv --seed 1", "--seed: '1' has no effect without --touch"},
      {"compare trace.csv --seed 1", "--seed: '1' has no effect without --touch"},
      {"generate llama --steps 1 --seed 1 -o a.csv", "--seed: '1' has no effect on one sequence length; it is for"},
      {"generate llama --steps 1 --vary-min 0.3 -o a.csv", "--vary-min: '0.3'"},
      {"generate llama --steps 1 --vary-multiple 8 --vary-seq none -o a.csv", "--vary-multiple: '8'"},
  };
  for (const auto& [command, warning] : kWarned) {
    const Outcome outcome = Shell(std::string("expanse ") + command);
    EXPECT_EQ(outcome.exit_status, 0) << command;
    EXPECT_THAT(outcome.err, testing::StartsWith("expanse: warning: ")) << command;
    EXPECT_THAT(outcome.err, HasSubstr(warning)) << command;
  }
}

TEST_F(ToolErrorsTest, WhatContradictsAnotherOptionIsRefused) {
  const struct {
    const char* command;
    const char* error;
  } kRefused[] = {
      {"replay trace.csv --allocator naive --record r.csv", "'r.csv' would not be written by naive; expected the all"},
      {"replay trace.csv --device cuda:0 --capacity 1GiB", "--capacity"},
      {"replay trace.csv --device cuda:0 --lag 3", "--lag"},
      {"compare trace.csv --device cuda:0 --fit", "--fit"},
      {"fit trace.csv --device cuda:0", "simulated"},
      // The same option twice.
      {"generate -o a.csv random -o b.csv", "--out: given several times, expected once at most"},
      {"replay trace.csv --capacity 1GiB --capacity 2GiB", "--capacity: given several times, expected once at most"},
      // Names of nothing.
      {"replay trace.csv --json ''", "--json: '' is no file name"},
      {"fit trace.csv --svg ''", "--svg: '' is no file name"},
      {"replay trace.csv --record ''", "--record: '' is no file name"},
      {"inspect trace.csv --json ''", "--json: '' is no file name"},
      {"generate random -o ''", "--out: '' is no file name"},
  };
  for (const auto& [command, error] : kRefused) {
    EXPECT_THAT(Error(std::string("expanse ") + command), HasSubstr(error)) << command;
  }
  EXPECT_FALSE(Exists("a.csv"));
}

TEST_F(ToolErrorsTest, OptionsOfOneAllocatorAreForThatOneAmongSeveral) {
  EXPECT_EQ(Shell("expanse compare trace.csv --growth lazy --chunk 4MiB --prewarm 8MiB --prealloc 64MiB").exit_status,
            0);
  EXPECT_EQ(Shell("expanse fit trace.csv --allocators naive,expanse --growth frugal").exit_status, 0);
  EXPECT_EQ(Shell("expanse replay trace.csv --allocator preallocated --prealloc 64MiB").exit_status, 0);
}

TEST_F(ToolErrorsTest, WhatALaterVersionBringsSaysSo) {
  for (const char* command :
       {"expanse merge a.json", "expanse doctor", "expanse replay trace.csv --html r.html",
        "expanse compare trace.csv --perfetto p.json", "expanse compare trace.csv --what-if growth=lazy,frugal",
        "expanse replay trace.csv --allocator driver-pool", "expanse compare trace.csv --allocators driver-pool",
        "expanse generate fsdp", "expanse convert trace.csv out.pickle"}) {
    EXPECT_THAT(Error(command), HasSubstr("comes in a later version")) << command;
  }
}

TEST_F(ToolErrorsTest, InputErrorsNameFileLineAndValue) {
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

TEST_F(ToolErrorsTest, OutputThatCannotBeWrittenIsAnError) {
  EXPECT_THAT(Error("expanse replay trace.csv --json no/such/folder.json"), HasSubstr("'no/such/folder.json'"));
  EXPECT_THAT(Error("expanse compare trace.csv --svg ."), HasSubstr("'.'"));
  EXPECT_THAT(Error("expanse convert trace.csv no/such.csv"), HasSubstr("no/such.csv"));
  EXPECT_THAT(Error("expanse generate random -o no/such.csv"), HasSubstr("no/such.csv"));
  const Outcome full = Shell("expanse inspect trace.csv > /dev/full");
  EXPECT_EQ(full.exit_status, 2);
  EXPECT_THAT(full.err, HasSubstr("standard output"));
}

TEST_F(ToolErrorsTest, AMissingDriverIsAnError) {
  const Outcome outcome = Shell("expanse replay trace.csv --device cuda:0");
  if (outcome.exit_status == 0) GTEST_SKIP() << "a real device is there";
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace expanse::tool

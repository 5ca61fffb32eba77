// Programs of one thread, on devices hardly larger than what they need, so that memory has to move.

#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "bench/trace/trace.h"
#include "core/allocator.h"
#include "gtest/gtest.h"
#include "tests/stress/stress_device.h"
#include "tests/stress/stress_program.h"
#include "tests/stress/stress_scale.h"
#include "tests/stress/stress_traces.h"
#include "vmm/units.h"

namespace expanse::stress {
namespace {

struct StressCase {
  const char* name;
  std::function<absl::StatusOr<bench::Trace>(uint64_t seed)> trace;
  double capacity;  // of the device, in multiples of what the trace has live at its peak, rounded to 512 bytes
  Growth growth;
  // Real memory: contents are checked. Accounting: they cannot be, and memory may be as large as a device's.
  sim::MemoryMode memory;
  Bytes chunk;
  ProgramOptions program;
  // Whether the program works on the legacy default stream in place of its first stream.
  bool legacy_stream = false;
};
void PrintTo(const StressCase& c, std::ostream* os) { *os << c.name; }

class Stress : public testing::TestWithParam<StressCase> {};

// Runs the case with one seed, and adds to `moved` the chunks that moved. The allocator must end as it began, the
// driver with nothing left.
void RunCase(const StressCase& stress, uint64_t seed, uint64_t& moved) {
  const absl::StatusOr<bench::Trace> trace = stress.trace(seed);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const bench::TraceSummary summary = Summarize(*trace);
  const Bytes peak = summary.peak_allocated;
  const Bytes memory =
      RoundUp(Bytes(static_cast<uint64_t>(static_cast<double>(peak.count()) * stress.capacity)), MiB(2));

  absl::StatusOr<std::unique_ptr<StressDevice>> device = StressDevice::Open(memory, stress.chunk, stress.memory);
  ASSERT_TRUE(device.ok()) << device.status();
  std::vector<StreamHandle> streams;
  for (uint64_t i = 0; i < summary.streams; ++i) {
    const absl::StatusOr<StreamHandle> stream = (*device)->CreateStream();
    ASSERT_TRUE(stream.ok()) << stream.status();
    streams.push_back(*stream);
  }
  if (stress.legacy_stream) streams[0] = StreamHandle();

  AllocatorOptions options;
  options.growth = stress.growth;
  options.chunk_size = stress.chunk;
  absl::StatusOr<std::unique_ptr<Allocator>> allocator = Allocator::Create((*device)->driver(), options);
  ASSERT_TRUE(allocator.ok()) << allocator.status();

  ProgramOptions program_options = stress.program;
  program_options.seed = seed;
  if (stress.memory == sim::MemoryMode::kReal) program_options.contents_by_chunk = stress.chunk;
  StressProgram program(**device, **allocator, *trace, streams, program_options);
  const absl::Status status = program.Run();
  ASSERT_TRUE(status.ok()) << status;

  const Stats stats = (*allocator)->GetStats();
  EXPECT_EQ(stats.live.current, Bytes());
  EXPECT_EQ(stats.live_blocks, 0u);
  EXPECT_EQ(stats.allocations, stats.frees);
  EXPECT_EQ(stats.failed_allocations, program.refused());
  EXPECT_LE(stats.reserved.peak, memory);
  moved += stats.chunks_moved;
  if (program.refused() == 0) {
    EXPECT_EQ(stats.live.peak, summary.peak_live);
  }
  std::cout << "  seed " << seed << ": " << summary.events << " events, " << stats.chunks_created << " chunks created, "
            << stats.chunks_moved << " moved, " << stats.waits << " waits, " << program.refused() << " refused\n";

  // With nothing live and nothing queued all memory is idle: it can all be given back, and all be had again.
  ASSERT_TRUE((*device)->WaitForEverything().ok());
  const absl::StatusOr<Bytes> trimmed = (*allocator)->Trim(Bytes());
  ASSERT_TRUE(trimmed.ok()) << trimmed.status();
  EXPECT_EQ((*allocator)->GetStats().reserved.current, Bytes());
  EXPECT_EQ((*device)->simulator().committed(DeviceOrdinal()), Bytes());
  const absl::StatusOr<DeviceAddress> all = (*allocator)->Allocate(memory, streams[0]);
  EXPECT_TRUE(all.ok()) << all.status();
  EXPECT_TRUE((*allocator)->CheckInvariants().ok()) << (*allocator)->CheckInvariants();

  allocator->reset();
  const absl::Status closed = (*device)->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

TEST_P(Stress, ServesKeepsContentsAndLeavesNothingBehind) {
  uint64_t moved = 0;
  for (uint64_t seed = 1; seed <= StressScale(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RunCase(GetParam(), seed, moved);
    if (HasFailure()) return;
  }
  EXPECT_GT(moved, 0u) << "the device is too large to make anything move";
}

constexpr auto kReal = sim::MemoryMode::kReal;
constexpr auto kAccounting = sim::MemoryMode::kAccounting;

// Small chunks give a small device as many of them as a large one has.
constexpr Bytes kSmallChunk = KiB(256);

ProgramOptions Plain(uint64_t runs, uint64_t check_every) {
  ProgramOptions options;
  options.runs = runs;
  options.check_every = check_every;
  return options;
}

ProgramOptions WithWork(uint64_t runs, uint64_t check_every) {
  ProgramOptions options = Plain(runs, check_every);
  options.queued_work = true;
  return options;
}

ProgramOptions MayRefuse(ProgramOptions options) {
  options.must_serve = false;
  return options;
}

const auto kSmallFixed = [](uint64_t seed) { return SmallLlama(bench::VarySeq::kNone, seed); };
const auto kSmallVarying = [](uint64_t seed) { return SmallLlama(bench::VarySeq::kStep, seed); };
const auto kFullFixed = [](uint64_t seed) { return FullLlama(bench::VarySeq::kNone, seed); };
const auto kFullVarying = [](uint64_t seed) { return FullLlama(bench::VarySeq::kStep, seed); };
const auto kTinyRandom = [](uint64_t seed) { return SmallRandom(2'000, seed); };
const auto kSmallRandom = [](uint64_t seed) { return SmallRandom(10'000, seed); };

constexpr Growth kBalanced = Growth::kBalanced;
constexpr Growth kLazy = Growth::kLazy;
constexpr Growth kFrugal = Growth::kFrugal;

std::vector<StressCase> Cases() {
  return {
      // Invariants checked after each event.
      {"TinyRandom", kTinyRandom, 1.10, kBalanced, kReal, kSmallChunk, Plain(2, 1)},
      {"TinyRandomFrugal", kTinyRandom, 1.10, kFrugal, kReal, kSmallChunk, Plain(2, 1)},
      {"TinyRandomWithWork", kTinyRandom, 1.10, kLazy, kReal, kSmallChunk, WithWork(2, 1)},
      {"TinyRandomOnLargeChunks", kTinyRandom, 1.10, kLazy, kReal, MiB(2), MayRefuse(WithWork(2, 1))},
      // Contents checked, each step alike.
      {"SmallLlama", kSmallFixed, 1.02, kBalanced, kReal, kSmallChunk, Plain(3, 97)},
      {"SmallLlamaFrugal", kSmallFixed, 1.05, kFrugal, kReal, kSmallChunk, Plain(3, 97)},
      {"SmallLlamaWithWork", kSmallFixed, 1.05, kLazy, kReal, kSmallChunk, WithWork(3, 97)},
      {"SmallLlamaOnLargeChunks", kSmallFixed, 1.02, kLazy, kReal, MiB(2), MayRefuse(Plain(3, 97))},
      // Contents checked, each step different.
      {"SmallLlamaVarying", kSmallVarying, 1.02, kBalanced, kReal, kSmallChunk, Plain(3, 97)},
      {"SmallLlamaVaryingFrugal", kSmallVarying, 1.05, kFrugal, kReal, kSmallChunk, WithWork(3, 97)},
      {"SmallLlamaVaryingOnLegacyStream", kSmallVarying, 1.05, kLazy, kReal, kSmallChunk, WithWork(3, 97), true},
      {"SmallRandom", kSmallRandom, 1.10, kLazy, kReal, kSmallChunk, WithWork(3, 211)},
      {"SmallRandomTooTight", kSmallRandom, 1.00, kLazy, kReal, kSmallChunk, MayRefuse(WithWork(2, 211))},
      // The sizes of the mission.
      {"FullLlama", kFullFixed, 1.01, kBalanced, kAccounting, MiB(2), Plain(2, 10'000)},
      {"FullLlamaFrugal", kFullFixed, 1.02, kFrugal, kAccounting, MiB(2), WithWork(1, 10'000)},
      {"FullLlamaVarying", kFullVarying, 1.01, kBalanced, kAccounting, MiB(2), Plain(2, 10'000)},
      {"FullLlamaVaryingWithWork", kFullVarying, 1.02, kLazy, kAccounting, MiB(2), WithWork(1, 10'000)},
      {"FullRandom", FullRandom, 1.05, kBalanced, kAccounting, MiB(2), Plain(2, 10'000)},
      {"FullRandomFrugal", FullRandom, 1.05, kFrugal, kAccounting, MiB(2), WithWork(1, 10'000)},
  };
}

INSTANTIATE_TEST_SUITE_P(Programs, Stress, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<StressCase>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace expanse::stress

// Programs on several threads, each with its own trace and streams, that share one allocator and too little memory to
// keep their idle chunks from each other.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
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

// Small, so that a small device has many.
constexpr Bytes kChunk = KiB(256);

struct Workload {
  bench::Trace trace;
  bench::TraceSummary summary;
  std::vector<StreamHandle> streams;
  absl::Status result;
  uint64_t refused = 0;
};

// One workload a thread: llama of fixed and of varying lengths and random sizes, by turns.
std::vector<Workload> MakeWorkloads(size_t threads, uint64_t seed) {
  std::vector<Workload> workloads;
  for (size_t i = 0; i < threads; ++i) {
    absl::StatusOr<bench::Trace> trace = i % 3 == 0   ? SmallRandom(4'000, seed * 100 + i)
                                         : i % 3 == 1 ? SmallLlama(bench::VarySeq::kStep, seed * 100 + i)
                                                      : SmallLlama(bench::VarySeq::kNone, 0);
    EXPECT_TRUE(trace.ok()) << trace.status();
    if (!trace.ok()) return {};
    Workload& workload = workloads.emplace_back();
    workload.trace = *std::move(trace);
    workload.summary = Summarize(workload.trace);
  }
  return workloads;
}

struct SharedCase {
  size_t threads;
  double capacity;  // in multiples of the sum of the programs' peaks
  Growth growth;
  ProgramOptions program;
};

void RunCase(const SharedCase& shared, uint64_t seed) {
  std::vector<Workload> workloads = MakeWorkloads(shared.threads, seed);
  ASSERT_EQ(workloads.size(), shared.threads);
  Bytes peaks;
  for (const Workload& workload : workloads) peaks += workload.summary.peak_allocated;
  const Bytes memory =
      RoundUp(Bytes(static_cast<uint64_t>(static_cast<double>(peaks.count()) * shared.capacity)), MiB(2));

  absl::StatusOr<std::unique_ptr<StressDevice>> device = StressDevice::Open(memory, kChunk, sim::MemoryMode::kReal);
  ASSERT_TRUE(device.ok()) << device.status();
  for (Workload& workload : workloads) {
    for (uint64_t i = 0; i < workload.summary.streams; ++i) {
      const absl::StatusOr<StreamHandle> stream = (*device)->CreateStream();
      ASSERT_TRUE(stream.ok()) << stream.status();
      workload.streams.push_back(*stream);
    }
  }
  AllocatorOptions options;
  options.growth = shared.growth;
  options.chunk_size = kChunk;
  absl::StatusOr<std::unique_ptr<Allocator>> allocator = Allocator::Create((*device)->driver(), options);
  ASSERT_TRUE(allocator.ok()) << allocator.status();

  std::vector<std::thread> threads;
  for (size_t i = 0; i < workloads.size(); ++i) {
    threads.emplace_back([&, i] {
      Workload& workload = workloads[i];
      ProgramOptions program_options = shared.program;
      program_options.seed = seed * 100 + i;
      StressProgram program(**device, **allocator, workload.trace, workload.streams, program_options);
      workload.result = program.Run();
      workload.refused = program.refused();
    });
  }
  for (std::thread& thread : threads) thread.join();

  uint64_t refused = 0;
  for (const Workload& workload : workloads) {
    EXPECT_TRUE(workload.result.ok()) << workload.result;
    refused += workload.refused;
  }
  if (testing::Test::HasFailure()) return;
  const Stats stats = (*allocator)->GetStats();
  EXPECT_EQ(stats.live.current, Bytes());
  EXPECT_EQ(stats.live_blocks, 0u);
  EXPECT_EQ(stats.allocations, stats.frees);
  EXPECT_EQ(stats.failed_allocations, refused);
  EXPECT_LE(stats.reserved.peak, memory);
  std::cout << "  seed " << seed << ": " << stats.allocations << " allocations, " << stats.chunks_created
            << " chunks created, " << stats.chunks_moved << " moved, " << stats.waits << " waits, " << refused
            << " refused\n";

  ASSERT_TRUE((*device)->WaitForEverything().ok());
  const absl::StatusOr<Bytes> trimmed = (*allocator)->Trim(Bytes());
  ASSERT_TRUE(trimmed.ok()) << trimmed.status();
  EXPECT_EQ((*allocator)->GetStats().reserved.current, Bytes());
  allocator->reset();
  const absl::Status closed = (*device)->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

void RunSeeds(const SharedCase& shared) {
  for (uint64_t seed = 1; seed <= StressScale(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RunCase(shared, seed);
    if (testing::Test::HasFailure()) return;
  }
}

ProgramOptions Program(bool queued_work, bool must_serve) {
  ProgramOptions options;
  options.contents_by_chunk = kChunk;
  options.queued_work = queued_work;
  options.must_serve = must_serve;
  options.runs = 2;
  options.check_every = 997;
  return options;
}

TEST(StressThreads, TwoProgramsAreServedSideBySide) {
  RunSeeds({2, 1.05, Growth::kLazy, Program(/*queued_work=*/false, /*must_serve=*/true)});
}

TEST(StressThreads, FourProgramsWithQueuedWorkAreServedSideBySide) {
  RunSeeds({4, 1.05, Growth::kBalanced, Program(/*queued_work=*/true, /*must_serve=*/true)});
}

TEST(StressThreads, FrugalProgramsTakeChunksFromEachOther) {
  RunSeeds({3, 1.05, Growth::kFrugal, Program(/*queued_work=*/true, /*must_serve=*/true)});
}

// Less memory than the peaks together: requests fail whenever the programs need most at the same time, and nothing
// else may go wrong.
TEST(StressThreads, ProgramsThatStarveEachOtherLoseNothing) {
  RunSeeds({4, 0.5, Growth::kLazy, Program(/*queued_work=*/true, /*must_serve=*/false)});
}

}  // namespace
}  // namespace expanse::stress

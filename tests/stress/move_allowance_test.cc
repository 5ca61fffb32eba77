// Moving memory that nothing forces to move costs no more than what was created allows, at every moment of every trace.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/generate/random.h"
#include "bench/trace/reader.h"
#include "bench/trace/trace.h"
#include "core/allocator.h"
#include "gtest/gtest.h"
#include "tests/stress/choices.h"
#include "tests/stress/stress_device.h"
#include "vmm/units.h"

namespace expanse::stress {
namespace {

using std::chrono::nanoseconds;

// docs/design.md: the model of what driver calls cost, and the bound.
constexpr uint64_t kCreateNs = 50'000;
constexpr uint64_t kCreateNsPerMiB = 140;
constexpr uint64_t kMoveNs = 70'000;
constexpr uint64_t kMostTimesCreation = 4;

struct Outcome {
  uint64_t moved = 0;
  uint64_t unforced = 0;  // of these
};

// After every event of a replay.
absl::Status CheckBounds(const Stats& stats, bool device_is_wide) {
  const uint64_t creation = kCreateNs * stats.chunks_created + kCreateNsPerMiB * (stats.reserved.total.count() >> 20);
  const nanoseconds spent = stats.unforced_moves.spent;
  if (spent > stats.unforced_moves.allowed) return absl::InternalError("unforced moves cost more than is allowed");
  if (spent > nanoseconds(kMostTimesCreation * creation)) {
    return absl::InternalError("unforced moves cost more than 4 times what creation did");
  }
  // Where nothing forces a move, all moves are counted.
  if (device_is_wide && nanoseconds(kMoveNs * stats.chunks_moved) != spent) {
    return absl::InternalError(absl::StrCat(stats.chunks_moved, " chunks moved, counted as ", spent.count(), " ns"));
  }
  return absl::OkStatus();
}

// Replays `trace` in default configuration on a device of this size, checking the bounds after every event, and all
// invariants once in `check_every` events. A request that fails is skipped.
absl::StatusOr<Outcome> Replay(const bench::Trace& trace, Bytes memory, bool wide, uint64_t check_every) {
  absl::StatusOr<std::unique_ptr<StressDevice>> device =
      StressDevice::Open(RoundUp(memory, MiB(2)), MiB(2), sim::MemoryMode::kAccounting);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::unique_ptr<Allocator>> allocator = Allocator::Create((*device)->driver(), {});
  if (!allocator.ok()) return allocator.status();
  std::map<int32_t, StreamHandle> streams;
  std::vector<DeviceAddress> blocks(trace.block_count());
  uint64_t count = 0;
  absl::Status status;
  for (const bench::TraceEvent& event : trace.events) {
    if (event.op != bench::TraceOp::kAllocate && event.op != bench::TraceOp::kFree) continue;
    if (streams.count(event.stream) == 0) {
      const absl::StatusOr<StreamHandle> stream = (*device)->CreateStream();
      if (!stream.ok()) return stream.status();
      streams[event.stream] = *stream;
    }
    DeviceAddress& block = blocks[event.block];
    if (event.op == bench::TraceOp::kAllocate) {
      const absl::StatusOr<DeviceAddress> address = (*allocator)->Allocate(Bytes(event.value), streams[event.stream]);
      if (address.ok()) block = *address;
      if (!address.ok() && !absl::IsResourceExhausted(address.status())) return address.status();
    } else if (!block.is_null()) {
      status.Update((*allocator)->Free(block));
    }
    status.Update(CheckBounds((*allocator)->GetStats(), wide));
    if (++count % check_every == 0) status.Update((*allocator)->CheckInvariants());
    if (!status.ok()) return absl::InternalError(absl::StrCat("event ", count, ": ", status.ToString()));
  }
  const Stats stats = (*allocator)->GetStats();
  allocator->reset();
  status.Update((*device)->Close());
  if (!status.ok()) return status;
  return Outcome{stats.chunks_moved, static_cast<uint64_t>(stats.unforced_moves.spent.count()) / kMoveNs};
}

Bytes Times(Bytes size, double factor) {
  return Bytes(static_cast<uint64_t>(static_cast<double>(size.count()) * factor));
}

TEST(MoveAllowance, HoldsOnEveryRecordedTrace) {
  const std::filesystem::path folder = std::filesystem::path(EXPANSE_SHARED_DIR) / "traces";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no recorded traces at " << folder;
  int traces = 0;
  uint64_t unforced = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path();
    if (!absl::EndsWith(path, ".csv") && !absl::EndsWith(path, ".csv.gz") && !absl::EndsWith(path, ".pickle")) continue;
    SCOPED_TRACE(path);
    const absl::StatusOr<bench::LoadedTrace> loaded = bench::ReadTrace(path, {});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const Bytes peak = Summarize(loaded->trace).peak_allocated;
    for (const double factor : {1.005, 1.05, 4.0}) {
      const absl::StatusOr<Outcome> outcome = Replay(loaded->trace, Times(peak, factor), factor == 4.0, 10'000);
      ASSERT_TRUE(outcome.ok()) << "capacity " << factor << " x peak: " << outcome.status();
      unforced += outcome->unforced;
    }
    ++traces;
  }
  EXPECT_GT(traces, 0);
  EXPECT_GT(unforced, 0u) << "nothing moved of its own accord: the bound was not tried";
}

// Small and large blocks, few and many streams, devices that just fit and wide ones.
bench::RandomConfig AnyShape(Choices& choices, uint64_t seed) {
  bench::RandomConfig config;
  config.events = 100 + 2 * choices.Below(150);
  config.live = MiB(64) * (uint64_t{1} << choices.Below(8));
  config.min_size = Bytes(512) * (uint64_t{1} << choices.Below(12));
  config.max_size = std::min(config.live, MiB(2) * (uint64_t{1} << choices.Below(10)));
  config.phases = 1 + choices.Below(8);
  config.streams = 1 + choices.Below(8);
  config.seed = seed;
  return config;
}

TEST(MoveAllowance, HoldsOnAThousandGeneratedTraces) {
  constexpr double kFactors[] = {1.0, 1.02, 1.1, 1.5, 10.0};
  Outcome sum;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededChoices choices(seed);
    const absl::StatusOr<bench::Trace> trace = bench::GenerateRandom(AnyShape(choices, seed));
    ASSERT_TRUE(trace.ok()) << trace.status();
    const double factor = kFactors[choices.Below(5)];
    const Bytes memory = std::max(MiB(64), Times(Summarize(*trace).peak_allocated, factor));
    const absl::StatusOr<Outcome> outcome = Replay(*trace, memory, factor == 10.0, 50);
    ASSERT_TRUE(outcome.ok()) << "capacity " << factor << " x peak: " << outcome.status();
    sum.moved += outcome->moved;
    sum.unforced += outcome->unforced;
  }
  std::cout << "  " << sum.moved << " chunks moved, " << sum.unforced << " of them unforced\n";
  EXPECT_GT(sum.unforced, 0u) << "nothing moved of its own accord: the bound was not tried";
  EXPECT_GT(sum.moved, sum.unforced) << "no device was tight";
}

}  // namespace
}  // namespace expanse::stress

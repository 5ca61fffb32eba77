// Every public function at random, on one to eight streams with queued work of random length, in real memory.

#include "tests/stress/random_operations.h"

#include <cstdint>
#include <iostream>
#include <memory>

#include "gtest/gtest.h"
#include "tests/stress/lying_driver.h"
#include "tests/stress/stress_scale.h"

namespace expanse::stress {
namespace {

// At scale 20, as in `./dev verify`: a million operations with a hundred seeds.
constexpr uint64_t kSeeds = 5;
constexpr uint64_t kOperations = 10'000;

struct Totals {
  uint64_t operations = 0;
  uint64_t served = 0;
  uint64_t refused = 0;
  uint64_t vetoes = 0;
  uint64_t pins_in_large_chunks = 0;
  uint64_t warnings = 0;
  uint64_t moved = 0;
  uint64_t waits = 0;
  uint64_t prewarmed = 0;
  uint64_t trimmed_unused = 0;
};

void RunSeed(uint64_t seed, Totals& totals) {
  SeededChoices choices(seed);
  const RandomShape shape = RandomShape::Draw(choices);
  const ShapeBudgets budgets(shape);
  absl::StatusOr<std::unique_ptr<StressDevice>> device = shape.OpenDevice();
  ASSERT_TRUE(device.ok()) << device.status();
  absl::StatusOr<std::unique_ptr<Allocator>> allocator =
      Allocator::Create((*device)->driver(), shape.OptionsOn(**device));
  ASSERT_TRUE(allocator.ok()) << allocator.status();
  {
    RandomOperations program(**device, **allocator, shape, choices);
    absl::Status status = program.Run(kOperations);
    if (status.ok()) status = program.End();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_GT(program.served(), kOperations / 10);
    totals.operations += kOperations;
    totals.served += program.served();
    totals.refused += program.refused();
    totals.vetoes += program.vetoes();
    totals.pins_in_large_chunks += program.pins_in_large_chunks();
    totals.warnings += program.warnings();
    totals.prewarmed += program.prewarmed();
    totals.trimmed_unused += program.trimmed_unused();
    totals.moved += (*allocator)->GetStats().chunks_moved;
    totals.waits += (*allocator)->GetStats().waits;
  }
  allocator->reset();
  const absl::Status closed = (*device)->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

TEST(RandomOperations, LeaveContentsIntactAndNoHazard) {
  Totals totals;
  for (uint64_t seed = 1; seed <= kSeeds * StressScale(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RunSeed(seed, totals);
    if (testing::Test::HasFailure()) return;
  }
  std::cout << "  " << totals.operations << " operations: " << totals.served << " requests served, " << totals.refused
            << " refused, " << totals.moved << " chunks moved, " << totals.vetoes << " vetoes, " << totals.waits
            << " waits, " << totals.warnings << " warnings, memory created ahead " << totals.prewarmed
            << " times and given back unused " << totals.trimmed_unused << " times\n";
  EXPECT_GT(totals.refused, 0u) << "memory was never short";
  EXPECT_GT(totals.moved, 0u);
  EXPECT_GT(totals.vetoes, 0u);
  EXPECT_GT(totals.pins_in_large_chunks, 0u) << "all chunks were of one slot";
  EXPECT_GT(totals.warnings, 0u);
  EXPECT_GT(totals.waits, 0u);
  EXPECT_GT(totals.prewarmed, 0u);
  EXPECT_GT(totals.trimmed_unused, 0u);
}

// The same program finds an allocator out that takes work to be over when it is not.
class CaughtByRandomOperations : public testing::TestWithParam<Lie> {};

TEST_P(CaughtByRandomOperations, AnAllocatorThatMovesMemoryUnderWork) {
  SeededChoices choices(1);
  const RandomShape shape = RandomShape::Draw(choices);
  const ShapeBudgets budgets(shape);
  absl::StatusOr<std::unique_ptr<StressDevice>> device = shape.OpenDevice();
  ASSERT_TRUE(device.ok()) << device.status();
  sim::Simulator& simulator = (*device)->simulator();
  absl::StatusOr<std::unique_ptr<Allocator>> allocator =
      Allocator::Create(LyingDriver((*device)->driver(), GetParam()), shape.OptionsOn(**device));
  ASSERT_TRUE(allocator.ok()) << allocator.status();
  {
    RandomOperations program(**device, **allocator, shape, choices);
    EXPECT_FALSE(program.Run(kOperations).ok());
  }
  EXPECT_GT(simulator.hazard_count(), 0u);
  // Nothing is queued any more that giving back could disturb.
  simulator.Advance(std::chrono::seconds(10));
  simulator.ResetStickyError();
  allocator->reset();
}

INSTANTIATE_TEST_SUITE_P(Lies, CaughtByRandomOperations,
                         testing::Values(Lie::kEventsAreComplete, Lie::kWaitsReturnAtOnce));

}  // namespace
}  // namespace expanse::stress

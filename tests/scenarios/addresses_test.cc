// Addresses run out too.

#include <string_view>

#include "gtest/gtest.h"
#include "tests/scenarios/stage.h"

namespace expanse::scenarios {
namespace {

// llama.cpp #4680: where the driver gives less than the usual multiple of a device's memory in addresses, as on Jetson,
// the reservation fails with most of the memory free.
TEST(Addresses, AReservationThatIsRefusedIsTriedSmaller) {
  const auto scenario = [](std::string_view allocator) {
    sim::Config config = Stage::Device(MiB(64));
    config.address_space = MiB(68);
    Stage stage(allocator, config, bench::BenchAllocatorOptions());
    stage.Allocate(MiB(40));
    return stage.served_all();
  };
  EXPECT_TRUE(scenario("expanse"));
  EXPECT_FALSE(scenario("per-stream-segments"));
}

}  // namespace
}  // namespace expanse::scenarios

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

// PyTorch #192269 and #193211: a segment of 9/8 of the device for each stream and size class uses up all 128 TiB that a
// process can reserve. Here at the 729th stream, with 16 GiB of memory in use.
TEST(Addresses, AThousandStreamsDoNotUseThemUp) {
  const auto scenario = [](std::string_view allocator) {
    Stage stage(allocator, GiB(80));
    stage.CheckAtTheEnd();
    for (int i = 0; i < 1000 && stage.served_all(); ++i) {
      const StreamHandle stream = stage.NewStream();
      stage.Allocate(KiB(4), stream);
      stage.Allocate(MiB(2), stream);
    }
    return stage.served_all();
  };
  EXPECT_TRUE(scenario("expanse"));
  EXPECT_FALSE(scenario("per-stream-segments"));
}

}  // namespace
}  // namespace expanse::scenarios

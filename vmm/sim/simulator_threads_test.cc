#include <thread>
#include <vector>

#include "vmm/sim/sim_fixture.h"

namespace expanse::sim {
namespace {

TEST_F(SimTest, ThreadsMapAndUnmapAtOnce) {
  Config config = SmallConfig();
  config.poison = false;
  StartWithContext(config);
  const abi::DevicePtr base = Reserve(16 * kChunk);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, base, t] {
      for (int i = 0; i < 100; ++i) {
        const abi::DevicePtr mine = base + (4 * t + static_cast<size_t>(i) % 4) * kChunk;
        const abi::MemHandle handle = MapNew(mine);
        *Pointer(mine) = static_cast<unsigned char>(i);
        EXPECT_EQ(*Pointer(mine), static_cast<unsigned char>(i));
        EXPECT_EQ(d.mem_unmap(mine, kChunk), abi::kSuccess);
        EXPECT_EQ(d.mem_release(handle), abi::kSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sim->ledger().mappings + sim->ledger().handles, 0u);
}

}  // namespace
}  // namespace expanse::sim

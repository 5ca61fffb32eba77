#include "vmm/sim/simulator.h"

#include "vmm/sim/sim_fixture.h"

namespace expanse::sim {
namespace {

TEST_F(SimTest, OneSimulatorAtATime) {
  Start(SmallConfig());
  EXPECT_EQ(Simulator::Create(SmallConfig()).status().code(), absl::StatusCode::kFailedPrecondition);
  sim.reset();
  EXPECT_EQ(d.init(0), abi::kDeinitialized);
  Start(SmallConfig());
}

TEST_F(SimTest, TheLedgerIsEmptyOnceEverythingWasGivenBack) {
  StartWithContext(SmallConfig());
  const abi::DevicePtr base = Reserve(4 * kChunk);
  const abi::MemHandle handle = MapNew(base);
  abi::DevicePtr classic;
  ASSERT_EQ(d.mem_alloc(&classic, 1000), abi::kSuccess);
  const Ledger ledger = sim->ledger();
  EXPECT_EQ(ledger.reservations, 1u);
  EXPECT_EQ(ledger.mappings, 1u);
  EXPECT_EQ(ledger.handles, 1u);
  EXPECT_EQ(ledger.allocations, 1u);
  EXPECT_EQ(ledger.classic_allocations, 1u);
  EXPECT_EQ(ledger.contexts, 1u);
  EXPECT_EQ(ledger.physical_bytes, MiB(2) + Bytes(1024));
  EXPECT_EQ(ledger.address_bytes, MiB(8));
  EXPECT_FALSE(ledger.Balanced());
  Check();
  EXPECT_EQ(d.mem_free(classic), abi::kSuccess);
  EXPECT_EQ(d.mem_unmap(base, kChunk), abi::kSuccess);
  EXPECT_EQ(d.mem_release(handle), abi::kSuccess);
  EXPECT_EQ(d.mem_address_free(base, 4 * kChunk), abi::kSuccess);
  EXPECT_EQ(d.primary_ctx_release(0), abi::kSuccess);
  EXPECT_TRUE(sim->ledger().Balanced()) << sim->ledger().ToString();
  EXPECT_EQ(sim->hazard_count(), 0u);
}

}  // namespace
}  // namespace expanse::sim

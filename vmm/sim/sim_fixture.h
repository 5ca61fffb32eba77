// For tests: a simulator with its driver table, and the few calls that most tests begin with.

#ifndef EXPANSE_VMM_SIM_SIM_FIXTURE_H_
#define EXPANSE_VMM_SIM_SIM_FIXTURE_H_

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "vmm/sim/simulator.h"

namespace expanse::sim {

// Invariants are checked at the end of every test that uses it; tests check them in between as well.
class SimTest : public ::testing::Test {
 protected:
  static constexpr size_t kChunk = size_t{2} << 20;

  // A small device without poison, of which every test that needs something else takes a copy.
  static Config SmallConfig() {
    Config config;
    config.devices[0].total_memory = MiB(64);
    config.costs = CostModel::Free();
    return config;
  }

  void Start(const Config& config) {
    auto simulator = Simulator::Create(config);
    ASSERT_TRUE(simulator.ok()) << simulator.status();
    sim = *std::move(simulator);
    d = sim->driver();
    ASSERT_EQ(d.init(0), abi::kSuccess);
  }
  // The same with a current context on device 0.
  void StartWithContext(const Config& config) {
    Start(config);
    abi::Context context;
    ASSERT_EQ(d.primary_ctx_retain(&context, 0), abi::kSuccess);
    ASSERT_EQ(d.ctx_set_current(context), abi::kSuccess);
  }
  void TearDown() override {
    if (sim) Check();
  }
  void Check() { ASSERT_EQ(sim->CheckInvariants(), absl::OkStatus()); }

  static abi::AllocationProp Prop(int device = 0) {
    abi::AllocationProp prop{};
    prop.type = abi::kAllocationPinned;
    prop.location = {abi::kLocationDevice, device};
    return prop;
  }
  abi::DevicePtr Reserve(size_t size) {
    abi::DevicePtr address = 0;
    EXPECT_EQ(d.mem_address_reserve(&address, size, 0, 0, 0), abi::kSuccess);
    return address;
  }
  abi::MemHandle Create(size_t size = kChunk, int device = 0) {
    abi::MemHandle handle = 0;
    const abi::AllocationProp prop = Prop(device);
    EXPECT_EQ(d.mem_create(&handle, size, &prop, 0), abi::kSuccess);
    return handle;
  }
  abi::Result Access(abi::DevicePtr address, size_t size, int flags = abi::kAccessReadWrite, int device = 0) {
    const abi::AccessDesc desc{{abi::kLocationDevice, device}, flags};
    return d.mem_set_access(address, size, &desc, 1);
  }
  // A new chunk mapped there with access; its handle is the caller's to release.
  abi::MemHandle MapNew(abi::DevicePtr address, size_t size = kChunk, int device = 0) {
    const abi::MemHandle handle = Create(size, device);
    EXPECT_EQ(d.mem_map(address, size, 0, handle, 0), abi::kSuccess);
    EXPECT_EQ(Access(address, size, abi::kAccessReadWrite, device), abi::kSuccess);
    return handle;
  }

  static unsigned char* Pointer(abi::DevicePtr address) {
    return static_cast<unsigned char*>(DeviceAddress(address).ptr());
  }

  std::unique_ptr<Simulator> sim;
  Driver d;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_SIM_FIXTURE_H_

#include "vmm/sim/simulator.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "vmm/sim/sim_fixture.h"

namespace expanse::sim {
namespace {

using ::testing::HasSubstr;

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

TEST(Simulator, NonsensicalConfigurationsAreNamed) {
  const auto message = [](const Config& config) {
    const absl::Status status = Simulator::Create(config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  Config config;
  config.devices.clear();
  EXPECT_THAT(message(config), HasSubstr("devices"));
  config = Config();
  config.devices.resize(65);
  EXPECT_THAT(message(config), HasSubstr("65"));
  config = Config();
  config.devices[0].granularity = Bytes(3000);
  EXPECT_THAT(message(config), HasSubstr("granularity 3000"));
  config = Config();
  config.address_space = Bytes();
  EXPECT_THAT(message(config), HasSubstr("address_space"));
}

TEST_F(SimTest, NothingWorksBeforeInit) {
  auto created = Simulator::Create(SmallConfig());
  ASSERT_TRUE(created.ok());
  sim = *std::move(created);
  d = sim->driver();
  abi::Context context = nullptr;
  int count = 0;
  EXPECT_EQ(d.ctx_get_current(&context), abi::kNotInitialized);
  EXPECT_EQ(d.device_get_count(&count), abi::kNotInitialized);
  EXPECT_EQ(d.mem_release(1), abi::kNotInitialized);
  EXPECT_EQ(sim->Launch(StreamHandle(), VirtualTime(), {}), abi::kNotInitialized);
  EXPECT_EQ(d.driver_get_version(&count), abi::kSuccess);
  EXPECT_EQ(count, 13000);
  const char* name = nullptr;
  EXPECT_EQ(d.get_error_name(abi::kOutOfMemory, &name), abi::kSuccess);
  EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(d.get_error_string(static_cast<abi::Result>(12345), &name), abi::kInvalidValue);
  EXPECT_EQ(name, nullptr);
  EXPECT_EQ(d.init(1), abi::kInvalidValue);
  EXPECT_EQ(d.init(0), abi::kSuccess);
  EXPECT_EQ(d.init(0), abi::kSuccess);
}

TEST_F(SimTest, AForkedChildOfAnInitialisedParentGetsNothing) {
  Start(SmallConfig());
  const pid_t child = fork();
  if (child == 0) {
    abi::MemHandle handle = 0;
    const abi::AllocationProp prop = Prop();
    const bool refused = d.init(0) == abi::kNotInitialized && d.mem_release(1) == abi::kNotInitialized &&
                         d.mem_create(&handle, kChunk, &prop, 0) == abi::kNotInitialized;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(d.init(0), abi::kSuccess);  // The parent goes on.
}

TEST_F(SimTest, AChildForkedBeforeInitIsFine) {
  auto created = Simulator::Create(SmallConfig());
  ASSERT_TRUE(created.ok());
  sim = *std::move(created);
  const pid_t child = fork();
  if (child == 0) _exit(sim->driver().init(0) == abi::kSuccess ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(SimTest, ContextsAreStackedByThread) {
  Config config = SmallConfig();
  config.devices.push_back(config.devices[0]);
  Start(config);
  abi::Context zero = nullptr, one = nullptr, got = nullptr;
  abi::Device device = 9;
  EXPECT_EQ(d.ctx_get_current(&got), abi::kSuccess);
  EXPECT_EQ(got, nullptr);
  EXPECT_EQ(d.ctx_get_device(&device), abi::kInvalidContext);
  EXPECT_EQ(d.ctx_synchronize(), abi::kInvalidContext);
  EXPECT_EQ(d.primary_ctx_release(0), abi::kInvalidContext);
  EXPECT_EQ(d.primary_ctx_retain(&zero, 2), abi::kInvalidDevice);
  ASSERT_EQ(d.primary_ctx_retain(&zero, 0), abi::kSuccess);
  ASSERT_EQ(d.primary_ctx_retain(&one, 1), abi::kSuccess);
  EXPECT_EQ(d.ctx_push_current(nullptr), abi::kInvalidContext);
  EXPECT_EQ(d.ctx_pop_current(&got), abi::kInvalidContext);
  EXPECT_EQ(d.ctx_push_current(zero), abi::kSuccess);
  EXPECT_EQ(d.ctx_push_current(one), abi::kSuccess);
  EXPECT_EQ(d.ctx_get_device(&device), abi::kSuccess);
  EXPECT_EQ(device, 1);
  std::thread([&] {
    abi::Context there = one;
    EXPECT_EQ(d.ctx_get_current(&there), abi::kSuccess);
    EXPECT_EQ(there, nullptr);
  }).join();
  EXPECT_EQ(d.ctx_set_current(nullptr), abi::kSuccess);  // Pops.
  EXPECT_EQ(d.ctx_get_current(&got), abi::kSuccess);
  EXPECT_EQ(got, zero);
  EXPECT_EQ(d.primary_ctx_release(0), abi::kSuccess);
  EXPECT_EQ(d.ctx_synchronize(), abi::kContextIsDestroyed);
  EXPECT_EQ(d.ctx_set_current(zero), abi::kInvalidContext);
  unsigned flags = 9;
  int active = 9;
  EXPECT_EQ(d.primary_ctx_get_state(0, &flags, &active), abi::kSuccess);
  EXPECT_EQ(active, 0);
}

TEST_F(SimTest, AContextTakesItsStreamsEventsAndClassicMemoryWithIt) {
  StartWithContext(SmallConfig());
  abi::Stream stream = nullptr;
  abi::Event event = nullptr;
  abi::DevicePtr classic = 0;
  const abi::MemHandle handle = Create();
  ASSERT_EQ(d.stream_create(&stream, 0), abi::kSuccess);
  ASSERT_EQ(d.event_create(&event, 0), abi::kSuccess);
  ASSERT_EQ(d.mem_alloc(&classic, 100), abi::kSuccess);
  ASSERT_EQ(d.primary_ctx_release(0), abi::kSuccess);
  const Ledger ledger = sim->ledger();
  EXPECT_EQ(ledger.streams + ledger.events + ledger.classic_allocations, 0u);
  EXPECT_EQ(ledger.handles, 1u);  // Belongs to no context.
  EXPECT_EQ(d.mem_release(handle), abi::kSuccess);
  EXPECT_TRUE(sim->ledger().Balanced()) << sim->ledger().ToString();
}

TEST_F(SimTest, DevicesHaveMemoryOfTheirOwn) {
  Config config = SmallConfig();
  config.devices.push_back(config.devices[0]);
  config.devices[1].total_memory = MiB(8);
  config.devices[1].name = "the smaller one";
  StartWithContext(config);
  char name[8];
  ASSERT_EQ(d.device_get_name(name, sizeof name, 1), abi::kSuccess);
  EXPECT_STREQ(name, "the sma");
  const abi::DevicePtr base = Reserve(4 * kChunk);
  MapNew(base, kChunk, 0);
  MapNew(base + kChunk, kChunk, 1);  // Beside each other in one reservation.
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), MiB(2));
  EXPECT_EQ(sim->committed(DeviceOrdinal(1)), MiB(2));
  // A stream of device 0 may not use what only device 1 may.
  EXPECT_EQ(d.memset_d8_async(base, 1, kChunk, nullptr), abi::kSuccess);
  EXPECT_EQ(d.memset_d8_async(base, 1, 2 * kChunk, nullptr), abi::kInvalidValue);
  abi::MemHandle handle = 0;
  const abi::AllocationProp prop = Prop(1);
  EXPECT_EQ(d.mem_create(&handle, 4 * kChunk, &prop, 0), abi::kOutOfMemory);
  abi::Uuid a, b;
  ASSERT_EQ(d.device_get_uuid(&a, 0), abi::kSuccess);
  ASSERT_EQ(d.device_get_uuid(&b, 1), abi::kSuccess);
  EXPECT_NE(std::memcmp(&a, &b, sizeof a), 0);
}

TEST_F(SimTest, ClassicAllocations) {
  StartWithContext(SmallConfig());
  abi::DevicePtr a = 77, b = 0, base = 0;
  size_t size = 0;
  EXPECT_EQ(d.mem_alloc(&a, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_alloc(&a, SIZE_MAX), abi::kOutOfMemory);
  EXPECT_EQ(a, 77u);
  ASSERT_EQ(d.mem_alloc(&a, 1000), abi::kSuccess);
  ASSERT_EQ(d.mem_alloc(&b, 1), abi::kSuccess);
  EXPECT_EQ(a % 256 + b % 256, 0u);
  EXPECT_EQ(d.mem_get_address_range(&base, &size, a + 999), abi::kSuccess);
  EXPECT_EQ(base, a);
  EXPECT_EQ(size, 1000u);
  EXPECT_EQ(d.mem_get_address_range(&base, &size, a + 1000), abi::kInvalidValue);
  abi::MemHandle handle = 0;
  EXPECT_EQ(d.mem_retain_allocation_handle(&handle, DeviceAddress(a).ptr()), abi::kInvalidValue);
  EXPECT_EQ(d.mem_unmap(a, 4096), abi::kInvalidValue);
  EXPECT_EQ(d.mem_free(a + 256), abi::kInvalidValue);
  EXPECT_EQ(d.mem_free(0), abi::kSuccess);
  EXPECT_EQ(d.mem_free(a), abi::kSuccess);
  EXPECT_EQ(d.mem_free(a), abi::kInvalidValue);
  const abi::DevicePtr vmm = Reserve(kChunk);
  MapNew(vmm);
  EXPECT_EQ(d.mem_free(vmm), abi::kInvalidValue);
}

TEST_F(SimTest, AccountingModeHoldsDevicesOfAnySize) {
  Config config;
  config.memory = MemoryMode::kAccounting;
  config.devices[0].total_memory = TiB(1);
  StartWithContext(config);
  constexpr size_t kChunks = 40000, kSize = size_t{26} << 20;
  const abi::DevicePtr base = Reserve(size_t{8} << 40);
  for (size_t i = 0; i < kChunks; ++i) {
    const abi::MemHandle handle = Create(kSize);
    ASSERT_EQ(d.mem_map(base + i * kSize, kSize, 0, handle, 0), abi::kSuccess);
    ASSERT_EQ(d.mem_release(handle), abi::kSuccess);
  }
  ASSERT_EQ(Access(base, kChunks * kSize), abi::kSuccess);
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), Bytes(kChunks * kSize));
  EXPECT_TRUE(sim->IsMapped({DeviceAddress(base), Bytes(kChunks * kSize)}));
  EXPECT_EQ(d.memset_d8_async(base, 1, kChunks * kSize, nullptr), abi::kSuccess);
  ASSERT_EQ(d.ctx_synchronize(), abi::kSuccess);
  ASSERT_EQ(d.mem_unmap(base, kChunks * kSize), abi::kSuccess);
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), Bytes());
  EXPECT_EQ(sim->committed_peak(DeviceOrdinal(0)), Bytes(kChunks * kSize));
}

}  // namespace
}  // namespace expanse::sim

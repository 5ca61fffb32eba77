// The virtual memory calls: what they do, and what they refuse. tests/driver_spec has every row of the specification;
// here is what needs more than one call to see.

#include <algorithm>

#include "vmm/sim/sim_fixture.h"

namespace expanse::sim {
namespace {

// Both modes keep the same books, so all of this must hold in both.
class VmmCalls : public SimTest, public ::testing::WithParamInterface<MemoryMode> {
 protected:
  void SetUp() override { Start(ConfigOfMode()); }
  static Config ConfigOfMode() {
    Config config = SmallConfig();
    config.memory = GetParam();
    config.poison = false;
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, VmmCalls, ::testing::Values(MemoryMode::kReal, MemoryMode::kAccounting));

TEST_P(VmmCalls, FailureLeavesOutputsAndStateAlone) {
  abi::DevicePtr address = 77;
  EXPECT_EQ(d.mem_address_reserve(&address, 0, 0, 0, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_address_reserve(&address, 100, 0, 0, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_address_reserve(&address, 4096, 3, 0, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_address_reserve(&address, 4096, 0, 100, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_address_reserve(&address, 4096, 0, 0, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_address_reserve(&address, SIZE_MAX - 4095, 0, 0, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_address_reserve(&address, size_t{1} << 48, 0, 0, 0), abi::kOutOfMemory);
  EXPECT_EQ(address, 77u);
  abi::MemHandle handle = 88;
  abi::AllocationProp prop = Prop();
  EXPECT_EQ(d.mem_create(&handle, 0, &prop, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_create(&handle, 2048, &prop, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_create(&handle, kChunk, &prop, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_create(&handle, kChunk * 33, &prop, 0), abi::kOutOfMemory);
  prop.location.id = 1;
  EXPECT_EQ(d.mem_create(&handle, kChunk, &prop, 0), abi::kInvalidDevice);
  prop.location.id = -1;
  EXPECT_EQ(d.mem_create(&handle, kChunk, &prop, 0), abi::kInvalidDevice);
  prop = Prop();
  prop.requested_handle_types = abi::kHandleFabric;
  EXPECT_EQ(d.mem_create(&handle, kChunk, &prop, 0), abi::kNotPermitted);
  prop = Prop();
  prop.type = abi::kAllocationInvalid;
  EXPECT_EQ(d.mem_create(&handle, kChunk, &prop, 0), abi::kInvalidValue);
  EXPECT_EQ(handle, 88u);
  EXPECT_TRUE(sim->ledger().Balanced()) << sim->ledger().ToString();
}

TEST_P(VmmCalls, HugeAndPlainAlignments) {
  for (const size_t alignment : {size_t{0}, size_t{2}, size_t{4096}, kChunk, size_t{1} << 30}) {
    abi::DevicePtr address = 0;
    ASSERT_EQ(d.mem_address_reserve(&address, kChunk, alignment, 0, 0), abi::kSuccess);
    EXPECT_EQ(address % std::max(alignment, kChunk), 0u);
    EXPECT_EQ(d.mem_address_free(address, kChunk), abi::kSuccess);
  }
}

TEST_P(VmmCalls, AddressFreeWantsExactlyWhatWasReserved) {
  const abi::DevicePtr base = Reserve(4 * kChunk);
  EXPECT_EQ(d.mem_address_free(base, 2 * kChunk), abi::kInvalidValue);
  EXPECT_EQ(d.mem_address_free(base, 8 * kChunk), abi::kInvalidValue);
  EXPECT_EQ(d.mem_address_free(base + kChunk, 3 * kChunk), abi::kInvalidValue);
  MapNew(base + kChunk);
  EXPECT_EQ(d.mem_address_free(base, 4 * kChunk), abi::kInvalidValue);
  EXPECT_TRUE(sim->IsMapped({DeviceAddress(base + kChunk), Bytes(kChunk)}));
  EXPECT_EQ(d.mem_unmap(base + kChunk, kChunk), abi::kSuccess);
  EXPECT_EQ(d.mem_address_free(base, 4 * kChunk), abi::kSuccess);
  EXPECT_EQ(d.mem_address_free(base, 4 * kChunk), abi::kInvalidValue);
}

TEST_P(VmmCalls, MemoryLivesWhileHandleOrMappingKeepsIt) {
  const abi::DevicePtr base = Reserve(2 * kChunk);
  const abi::MemHandle handle = MapNew(base);
  EXPECT_EQ(d.mem_release(handle), abi::kSuccess);
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), MiB(2));
  EXPECT_EQ(sim->ledger().handles, 0u);
  EXPECT_EQ(d.mem_map(base + kChunk, kChunk, 0, handle, 0), abi::kInvalidValue);  // Dead.
  abi::MemHandle again = 0;
  EXPECT_EQ(d.mem_retain_allocation_handle(&again, Pointer(base + 100)), abi::kSuccess);
  EXPECT_EQ(again, handle);
  EXPECT_EQ(d.mem_map(base + kChunk, kChunk, 0, handle, 0), abi::kSuccess);  // Alive again.
  EXPECT_EQ(d.mem_unmap(base, 2 * kChunk), abi::kSuccess);
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), MiB(2));
  Check();
  EXPECT_EQ(d.mem_release(handle), abi::kSuccess);
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), Bytes());
  EXPECT_EQ(sim->hazard_count(), 0u);
}

TEST_P(VmmCalls, ReleasingTooOftenIsABreach) {
  const abi::MemHandle handle = Create();
  EXPECT_EQ(d.mem_release(handle), abi::kSuccess);
  EXPECT_EQ(d.mem_release(handle), abi::kInvalidValue);
  EXPECT_EQ(d.mem_release(0), abi::kInvalidValue);
  ASSERT_EQ(sim->hazard_count(), 2u);
  EXPECT_EQ(sim->hazards()[0].kind, Hazard::Kind::kContractBreach);
  sim->ClearHazards();
  EXPECT_EQ(sim->hazard_count(), 0u);
}

TEST_P(VmmCalls, MapRefusals) {
  const abi::DevicePtr base = Reserve(4 * kChunk);
  const abi::MemHandle small = Create(), large = Create(2 * kChunk);
  EXPECT_EQ(d.mem_map(0, kChunk, 0, small, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base, 0, 0, small, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base, kChunk, SIZE_MAX, small, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base + 4096, kChunk, 0, small, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base, 4096, 0, small, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base, kChunk, 0, small, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base, kChunk, 0, 0, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base, 2 * kChunk, 0, small, 0), abi::kNotSupported);
  EXPECT_EQ(d.mem_map(base, kChunk, kChunk, large, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base, kChunk, 8 * kChunk, large, 0), abi::kNotSupported);
  EXPECT_EQ(d.mem_map(base + 3 * kChunk, 2 * kChunk, 0, large, 0), abi::kInvalidValue);  // Past the end.
  EXPECT_EQ(d.mem_map(base + 8 * kChunk, kChunk, 0, small, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_map(base + kChunk, 2 * kChunk, 0, large, 0), abi::kSuccess);
  EXPECT_EQ(d.mem_map(base + 2 * kChunk, kChunk, 0, small, 0), abi::kInvalidValue);  // Taken.
  EXPECT_EQ(d.mem_map(base, kChunk, 0, large, 0), abi::kSuccess);  // The head of the memory, as an alias.
  EXPECT_EQ(sim->ledger().mappings, 2u);
}

TEST_P(VmmCalls, UnmapTakesWholeMappingsOnly) {
  const abi::DevicePtr base = Reserve(8 * kChunk);
  MapNew(base, 2 * kChunk);
  MapNew(base + 2 * kChunk);
  MapNew(base + 4 * kChunk);
  EXPECT_EQ(d.mem_unmap(base, kChunk), abi::kInvalidValue);
  EXPECT_EQ(d.mem_unmap(base, 2 * kChunk - 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_unmap(base + kChunk, 2 * kChunk), abi::kInvalidValue);
  EXPECT_EQ(d.mem_unmap(base, 5 * kChunk), abi::kInvalidValue);  // A hole.
  EXPECT_EQ(d.mem_unmap(base + 3 * kChunk, kChunk), abi::kInvalidValue);
  EXPECT_EQ(d.mem_unmap(base, 16 * kChunk), abi::kInvalidValue);
  EXPECT_EQ(sim->ledger().mappings, 3u);
  EXPECT_EQ(d.mem_unmap(base, 3 * kChunk), abi::kSuccess);
  EXPECT_EQ(d.mem_unmap(base, 3 * kChunk), abi::kInvalidValue);
  EXPECT_EQ(sim->ledger().mappings, 1u);
}

TEST_P(VmmCalls, AccessBelongsToTheMapping) {
  const abi::DevicePtr base = Reserve(4 * kChunk);
  const abi::MemHandle handle = MapNew(base, 2 * kChunk);
  const abi::Location here{abi::kLocationDevice, 0}, nowhere{abi::kLocationDevice, 1};
  abi::u64 flags = 99;
  EXPECT_EQ(d.mem_get_access(&flags, &here, base + kChunk + 5), abi::kSuccess);
  EXPECT_EQ(flags, 3u);
  EXPECT_EQ(d.mem_get_access(&flags, &nowhere, base), abi::kInvalidDevice);
  EXPECT_EQ(d.mem_get_access(&flags, &here, base + 2 * kChunk), abi::kInvalidValue);
  EXPECT_EQ(Access(base, 2 * kChunk, abi::kAccessRead), abi::kSuccess);
  EXPECT_EQ(d.mem_get_access(&flags, &here, base), abi::kSuccess);
  EXPECT_EQ(flags, 1u);
  EXPECT_EQ(d.mem_unmap(base, 2 * kChunk), abi::kSuccess);
  EXPECT_EQ(d.mem_map(base, 2 * kChunk, 0, handle, 0), abi::kSuccess);
  EXPECT_EQ(d.mem_get_access(&flags, &here, base), abi::kSuccess);
  EXPECT_EQ(flags, 0u);  // A new mapping, so none.
}

TEST_P(VmmCalls, SetAccessRefusals) {
  const abi::DevicePtr base = Reserve(8 * kChunk);
  MapNew(base, 2 * kChunk);
  MapNew(base + 2 * kChunk);
  const abi::AccessDesc good{{abi::kLocationDevice, 0}, abi::kAccessRead};
  EXPECT_EQ(d.mem_set_access(0, kChunk, &good, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_set_access(base, 0, &good, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_set_access(base, 2 * kChunk, nullptr, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_set_access(base, 2 * kChunk, &good, 0), abi::kInvalidValue);
  EXPECT_EQ(d.mem_set_access(base, 2 * kChunk + 1, &good, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_set_access(base, kChunk, &good, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_set_access(base, 4 * kChunk, &good, 1), abi::kInvalidValue);
  EXPECT_EQ(d.mem_set_access(base + 4 * kChunk, kChunk, &good, 1), abi::kInvalidValue);
  for (const abi::AccessDesc bad : {abi::AccessDesc{{abi::kLocationDevice, 0}, 2},
                                    {{abi::kLocationDevice, 0}, -1},
                                    {{abi::kLocationInvalid, 0}, 3},
                                    {{abi::kLocationHost, 0}, 3},
                                    {{abi::kLocationDevice, 1}, 3},
                                    {{abi::kLocationDevice, -1}, 3}}) {
    const abi::AccessDesc both[] = {good, bad};
    EXPECT_EQ(d.mem_set_access(base, 3 * kChunk, both, 2), abi::kInvalidValue);
  }
  EXPECT_TRUE(sim->IsMapped({DeviceAddress(base), Bytes(3 * kChunk)}));  // Nothing of the first descriptor stuck.
  EXPECT_EQ(d.mem_set_access(base, 3 * kChunk, &good, 1), abi::kSuccess);
  EXPECT_FALSE(sim->IsMapped({DeviceAddress(base), Bytes(kChunk)}));
}

TEST_P(VmmCalls, PropertiesSayWhatWasGranted) {
  abi::AllocationProp prop = Prop();
  prop.alloc_flags.compression_type = 1;
  prop.alloc_flags.gpu_direct_rdma_capable = 1;
  prop.requested_handle_types = abi::kHandlePosixFd;
  abi::MemHandle handle = 0;
  ASSERT_EQ(d.mem_create(&handle, kChunk, &prop, 0), abi::kSuccess);
  abi::AllocationProp granted{};
  ASSERT_EQ(d.mem_get_allocation_properties(&granted, handle), abi::kSuccess);
  EXPECT_EQ(granted.requested_handle_types, abi::kHandlePosixFd);
  EXPECT_EQ(granted.alloc_flags.compression_type, 0);
  EXPECT_EQ(granted.alloc_flags.gpu_direct_rdma_capable, 0);
  EXPECT_EQ(granted.location.id, 0);
  int fd = -5;
  EXPECT_EQ(d.mem_export(&fd, handle, abi::kHandlePosixFd, 0), abi::kNotSupported);
  EXPECT_EQ(fd, -5);
}

TEST_P(VmmCalls, PointersTellWhatTheyPointTo) {
  sim.reset();
  StartWithContext(ConfigOfMode());
  const abi::DevicePtr base = Reserve(4 * kChunk);
  MapNew(base + kChunk);
  abi::DevicePtr address = 0;
  size_t size = 0;
  int number = -1;
  EXPECT_EQ(d.pointer_get_attribute(&address, abi::kPointerRangeStart, base + kChunk + 5), abi::kSuccess);
  EXPECT_EQ(address, base);
  EXPECT_EQ(d.pointer_get_attribute(&size, abi::kPointerRangeSize, base), abi::kSuccess);
  EXPECT_EQ(size, 4 * kChunk);
  EXPECT_EQ(d.pointer_get_attribute(&number, abi::kPointerMapped, base), abi::kSuccess);
  EXPECT_EQ(number, 0);
  EXPECT_EQ(d.pointer_get_attribute(&number, abi::kPointerMapped, base + kChunk), abi::kSuccess);
  EXPECT_EQ(number, 1);
  EXPECT_EQ(d.pointer_get_attribute(&address, abi::kPointerMappingBase, base + kChunk + 5), abi::kSuccess);
  EXPECT_EQ(address, base + kChunk);
  EXPECT_EQ(d.pointer_get_attribute(&number, abi::kPointerMemoryType, base + kChunk), abi::kSuccess);
  EXPECT_EQ(number, 2);
  EXPECT_EQ(d.pointer_get_attribute(&number, abi::kPointerAccessFlags, base + kChunk), abi::kSuccess);
  EXPECT_EQ(number, 3);
  EXPECT_EQ(d.pointer_get_attribute(&number, abi::kPointerMemoryType, base), abi::kInvalidValue);
  EXPECT_EQ(d.pointer_get_attribute(&number, abi::kPointerMapped, base + 4 * kChunk), abi::kInvalidValue);
  EXPECT_EQ(d.mem_get_address_range(&address, &size, base + kChunk + 5), abi::kSuccess);
  EXPECT_EQ(address, base + kChunk);
  EXPECT_EQ(size, kChunk);
  EXPECT_EQ(d.mem_get_address_range(nullptr, nullptr, base + kChunk), abi::kSuccess);
  EXPECT_EQ(d.mem_get_address_range(&address, &size, base), abi::kInvalidValue);
}

TEST_P(VmmCalls, LimitsOnHandlesAndMappings) {
  sim.reset();
  Config config = ConfigOfMode();
  config.max_handles = 3;
  config.max_mappings = 2;
  Start(config);
  const abi::DevicePtr base = Reserve(4 * kChunk);
  const abi::MemHandle handle = Create();
  Create();
  Create();
  abi::MemHandle more = 0;
  const abi::AllocationProp prop = Prop();
  EXPECT_EQ(d.mem_create(&more, kChunk, &prop, 0), abi::kOutOfMemory);
  EXPECT_EQ(d.mem_map(base, kChunk, 0, handle, 0), abi::kSuccess);
  EXPECT_EQ(d.mem_map(base + kChunk, kChunk, 0, handle, 0), abi::kSuccess);
  EXPECT_EQ(d.mem_map(base + 2 * kChunk, kChunk, 0, handle, 0), abi::kOutOfMemory);
  EXPECT_EQ(d.mem_unmap(base, kChunk), abi::kSuccess);
  EXPECT_EQ(d.mem_map(base + 2 * kChunk, kChunk, 0, handle, 0), abi::kSuccess);
}

TEST_P(VmmCalls, GranularityIsTheDevices) {
  for (const Bytes granularity : {KiB(64), MiB(512)}) {
    sim.reset();
    Config config = ConfigOfMode();
    config.devices[0].granularity = granularity;
    config.devices[0].total_memory = GiB(1);
    Start(config);
    size_t answer = 0;
    const abi::AllocationProp prop = Prop();
    ASSERT_EQ(d.mem_get_allocation_granularity(&answer, &prop, abi::kGranularityRecommended), abi::kSuccess);
    EXPECT_EQ(answer, granularity.count());
    const abi::DevicePtr base = Reserve(answer);
    EXPECT_EQ(base % answer, 0u);
    MapNew(base, answer);
    EXPECT_EQ(d.mem_unmap(base, answer), abi::kSuccess);
  }
}

}  // namespace
}  // namespace expanse::sim

#include "vmm/device.h"

#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;

TEST_F(SimulatedDeviceTest, OpenReadsWhatTheDeviceIs) {
  EXPECT_EQ(device->ordinal(), DeviceOrdinal(0));
  EXPECT_EQ(device->total_memory(), kTestDeviceMemory);
  EXPECT_EQ(device->granularity(), kGranule);
  EXPECT_NE(device->context(), nullptr);
  EXPECT_FALSE(device->capabilities().posix_fd_handles);
  EXPECT_FALSE(device->capabilities().fabric_handles);
  EXPECT_FALSE(device->capabilities().rdma);
}

TEST_F(SimulatedDeviceTest, OpenHoldsNothingButTheContext) {
  const sim::Ledger ledger = simulator->ledger();
  EXPECT_EQ(ledger.contexts, 1u);
  EXPECT_EQ(ledger.reservations, 0u);
  EXPECT_EQ(ledger.mappings, 0u);
  EXPECT_EQ(ledger.handles, 0u);
  EXPECT_EQ(ledger.allocations, 0u);
}

TEST_F(SimulatedDeviceTest, UnknownAttributeCountsAsAbsent) {
  sim::Config config = SmallConfig();
  config.devices[0].attributes[abi::kAttributeHandlePosixFd] = 1;
  config.devices[0].attributes[abi::kAttributeMulticast] = 1;
  Start(config);
  EXPECT_TRUE(device->capabilities().posix_fd_handles);
  EXPECT_TRUE(device->capabilities().multicast);
  device.reset();
  simulator->FailNthCall(EntryPoint::device_get_attribute, 2, abi::kInvalidValue);
  auto opened = Device::Open(simulator->driver(), DeviceOrdinal(0));
  ASSERT_TRUE(opened.ok()) << opened.status();
}

TEST_F(SimulatedDeviceTest, OpenRefusesADeviceWithoutVirtualMemoryManagement) {
  device.reset();
  simulator.reset();
  sim::Config config = SmallConfig();
  config.devices[0].attributes[abi::kAttributeVirtualMemoryManagement] = 0;
  auto created = sim::Simulator::Create(config);
  ASSERT_TRUE(created.ok());
  simulator = std::move(*created);
  const auto opened = Device::Open(simulator->driver(), DeviceOrdinal(0));
  EXPECT_TRUE(absl::IsUnimplemented(opened.status())) << opened.status();
}

TEST_F(SimulatedDeviceTest, OpenRefusesADeviceThatOnlyClaimsVirtualMemoryManagement) {
  device.reset();
  simulator->FailNthCall(EntryPoint::mem_create, 1, abi::kOutOfMemory);  // as some integrated devices do
  const auto opened = Device::Open(simulator->driver(), DeviceOrdinal(0));
  EXPECT_TRUE(absl::IsResourceExhausted(opened.status())) << opened.status();
  EXPECT_TRUE(simulator->ledger().Balanced()) << simulator->ledger().ToString();
}

TEST_F(SimulatedDeviceTest, OpenTakesADeviceThatIsFullJustNow) {
  device.reset();
  simulator->SetTakenByOthers(DeviceOrdinal(0), kTestDeviceMemory);
  const auto opened = Device::Open(simulator->driver(), DeviceOrdinal(0));
  EXPECT_TRUE(opened.ok()) << opened.status();
  simulator->SetTakenByOthers(DeviceOrdinal(0), kTestDeviceMemory - MiB(2));
  simulator->FailNthCall(EntryPoint::mem_create, 1, abi::kOutOfMemory);
  EXPECT_FALSE(Device::Open(simulator->driver(), DeviceOrdinal(0)).ok()) << "one chunk should have been had";
}

TEST_F(SimulatedDeviceTest, OpenRefusesADeviceThatCannotUndoAMapping) {
  for (const EntryPoint undo : {EntryPoint::mem_unmap, EntryPoint::mem_release, EntryPoint::mem_address_free}) {
    Start(SmallConfig());
    device.reset();
    simulator->FailNthCall(undo, 1, abi::kUnknown);
    const auto opened = Device::Open(simulator->driver(), DeviceOrdinal(0));
    EXPECT_TRUE(absl::IsInternal(opened.status())) << opened.status();
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(std::string(SymbolName(undo))));
    EXPECT_TRUE(simulator->ledger().Balanced()) << "asked once more, it undoes: " << simulator->ledger().ToString();
    simulator.reset();
  }
}

TEST_F(SimulatedDeviceTest, OpenRefusesAnOrdinalThatDoesNotExist) {
  for (const int ordinal : {-1, 1}) {
    const auto opened = Device::Open(simulator->driver(), DeviceOrdinal(ordinal));
    EXPECT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr("cuDeviceGet("));
  }
}

TEST_F(SimulatedDeviceTest, OtherGranularitiesAreTakenAsTheyAre) {
  for (const Bytes granularity : {KiB(64), MiB(32)}) {
    sim::Config config = SmallConfig();
    config.devices[0].granularity = granularity;
    Start(config);
    EXPECT_EQ(device->granularity(), granularity);
  }
}

TEST_F(SimulatedDeviceTest, MemoryInfoFollowsWhatIsTaken) {
  absl::StatusOr<MemoryInfo> info = device->GetMemoryInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->total, kTestDeviceMemory);
  const Bytes free = info->free;
  auto chunk = Chunk::Create(device->driver(), device->ordinal(), MiB(6), ChunkKind());
  ASSERT_TRUE(chunk.ok());
  info = device->GetMemoryInfo();
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(free - info->free, MiB(6));
  EXPECT_EQ(simulator->counters().TotalCalls(), 3u + 1u + 3u);
}

TEST_F(SimulatedDeviceTest, ProbeFindsOutWhichKindsAreRefused) {
  EXPECT_TRUE(device->ProbeKind(ChunkKind()).ok());
  ChunkKind fabric;
  fabric.fabric = true;
  const absl::Status refused = device->ProbeKind(fabric);
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("kind=fabric"));
  EXPECT_EQ(simulator->ledger().handles, 0u);
}

TEST(Device, EveryFailureOfOpenIsReportedAndUndone) {
  FailEachCallInTurn(SmallConfig(), [](sim::Simulator& simulator) {
    return Device::Open(simulator.driver(), DeviceOrdinal(0)).status();
  });
}

TEST(Device, EveryFailureOfMemoryInfoIsReported) {
  FailEachCallInTurn(SmallConfig(), [](sim::Simulator& simulator) -> absl::Status {
    auto device = Device::Open(simulator.driver(), DeviceOrdinal(0));
    if (!device.ok()) return device.status();
    return (*device)->GetMemoryInfo().status();
  });
}

TEST(Device, OpenWorksWhateverTheQuirks) {
  sim::Config config = SmallConfig();
  config.quirks.vmm_needs_context = true;
  config.quirks.address_free_live = true;
  config.quirks.honour_address_hints = false;
  config.quirks.release_lag = true;
  FailEachCallInTurn(
      config, [](sim::Simulator& simulator) { return Device::Open(simulator.driver(), DeviceOrdinal(0)).status(); });
}

}  // namespace
}  // namespace expanse

#include "vmm/chunk.h"

#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "vmm/simulated_device_fixture.h"

namespace expanse {
namespace {

ChunkKind Exportable() {
  ChunkKind kind;
  kind.posix_fd = true;
  return kind;
}

TEST(ChunkKind, DiffersInEveryProperty) {
  absl::flat_hash_set<ChunkKind> kinds;
  for (int bits = 0; bits < 16; ++bits) {
    ChunkKind kind;
    kind.posix_fd = (bits & 1) != 0;
    kind.fabric = (bits & 2) != 0;
    kind.rdma = (bits & 4) != 0;
    kind.compression = (bits & 8) != 0;
    EXPECT_TRUE(kinds.insert(kind).second) << ToString(kind);
    EXPECT_FALSE(kinds.insert(kind).second) << ToString(kind);
  }
  EXPECT_EQ(ToString(ChunkKind()), "plain");
  ChunkKind kind = Exportable();
  kind.rdma = true;
  EXPECT_EQ(ToString(kind), "posix_fd+rdma");
}

TEST(ChunkKind, PropertiesAskForWhatTheKindSaysAndLeaveTheRestZero) {
  ChunkKind kind = Exportable();
  kind.fabric = kind.rdma = kind.compression = true;
  const abi::AllocationProp prop = AllocationProperties(DeviceOrdinal(3), kind);
  EXPECT_EQ(prop.type, abi::kAllocationPinned);
  EXPECT_EQ(prop.location.type, abi::kLocationDevice);
  EXPECT_EQ(prop.location.id, 3);
  EXPECT_EQ(prop.requested_handle_types, abi::kHandlePosixFd | abi::kHandleFabric);
  EXPECT_EQ(prop.alloc_flags.compression_type, 1);
  EXPECT_EQ(prop.alloc_flags.gpu_direct_rdma_capable, 1);
  EXPECT_EQ(prop.alloc_flags.usage, 0);

  abi::AllocationProp plain = AllocationProperties(DeviceOrdinal(0), ChunkKind());
  plain.type = 0;
  plain.location = {0, 0};
  const abi::AllocationProp zero{};
  EXPECT_EQ(std::memcmp(&plain, &zero, sizeof(zero)), 0);
}

using ChunkTest = SimulatedDeviceTest;

TEST_F(ChunkTest, OwnsOneHandle) {
  {
    auto chunk = Chunk::Create(device->driver(), device->ordinal(), MiB(4), Exportable());
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    EXPECT_EQ(chunk->size(), MiB(4));
    EXPECT_NE(chunk->handle(), 0u);
    EXPECT_EQ(simulator->ledger().handles, 1u);
    EXPECT_EQ(simulator->committed(DeviceOrdinal(0)), MiB(4));
  }
  EXPECT_EQ(simulator->ledger().handles, 0u);
}

TEST_F(ChunkTest, MovingPassesOwnershipOn) {
  auto first = Chunk::Create(device->driver(), device->ordinal(), MiB(2), ChunkKind());
  auto second = Chunk::Create(device->driver(), device->ordinal(), MiB(4), ChunkKind());
  ASSERT_TRUE(first.ok() && second.ok());
  const abi::MemHandle handle = first->handle();
  *second = std::move(*first);
  EXPECT_TRUE(first->empty());
  EXPECT_EQ(second->handle(), handle);
  EXPECT_EQ(second->size(), MiB(2));
  EXPECT_EQ(simulator->ledger().handles, 1u);
}

TEST_F(ChunkTest, RefusedReleaseKeepsOwnership) {
  auto chunk = Chunk::Create(device->driver(), device->ordinal(), MiB(2), ChunkKind());
  ASSERT_TRUE(chunk.ok());
  simulator->FailNthCall(EntryPoint::mem_release, 1, abi::kUnknown);
  EXPECT_TRUE(absl::IsInternal(chunk->Release()));
  EXPECT_FALSE(chunk->empty());
  EXPECT_TRUE(chunk->Release().ok());
  EXPECT_TRUE(chunk->empty());
  EXPECT_TRUE(chunk->Release().ok());
  EXPECT_EQ(Calls(EntryPoint::mem_release), 2u);
}

TEST_F(ChunkTest, ExhaustedDeviceIsResourceExhausted) {
  const auto chunk = Chunk::Create(device->driver(), device->ordinal(), kTestDeviceMemory + kGranule, ChunkKind());
  EXPECT_TRUE(absl::IsResourceExhausted(chunk.status())) << chunk.status();
}

TEST_F(ChunkTest, SizeOffTheGranularityIsInvalid) {
  const auto chunk = Chunk::Create(device->driver(), device->ordinal(), kGranule + KiB(4), ChunkKind());
  EXPECT_TRUE(absl::IsInvalidArgument(chunk.status())) << chunk.status();
}

}  // namespace
}  // namespace expanse

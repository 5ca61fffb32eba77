// Memory that is real: contents, aliases, and addresses that fault.

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "vmm/sim/fault_probe.h"
#include "vmm/sim/sim_fixture.h"

namespace expanse::sim {
namespace {

using RealMemory = SimTest;

TEST_F(RealMemory, DataSurvivesAMove) {
  StartWithContext(SmallConfig());
  const abi::DevicePtr base = Reserve(8 * kChunk);
  const abi::MemHandle handle = MapNew(base);
  std::memset(Pointer(base), 0x5a, kChunk);
  ASSERT_EQ(d.mem_unmap(base, kChunk), abi::kSuccess);
  ASSERT_EQ(d.mem_map(base + 5 * kChunk, kChunk, 0, handle, 0), abi::kSuccess);
  ASSERT_EQ(Access(base + 5 * kChunk, kChunk), abi::kSuccess);
  EXPECT_TRUE(
      std::all_of(Pointer(base + 5 * kChunk), Pointer(base + 6 * kChunk), [](unsigned char c) { return c == 0x5a; }));
}

TEST_F(RealMemory, AliasesShowTheSameBytes) {
  StartWithContext(SmallConfig());
  const abi::DevicePtr base = Reserve(2 * kChunk);
  const abi::MemHandle handle = MapNew(base);
  ASSERT_EQ(d.mem_map(base + kChunk, kChunk, 0, handle, 0), abi::kSuccess);
  ASSERT_EQ(Access(base + kChunk, kChunk, abi::kAccessRead), abi::kSuccess);
  ASSERT_EQ(d.mem_release(handle), abi::kSuccess);
  *Pointer(base + 1234) = 99;
  EXPECT_EQ(*Pointer(base + kChunk + 1234), 99);
  ASSERT_EQ(d.mem_unmap(base, kChunk), abi::kSuccess);
  EXPECT_EQ(*Pointer(base + kChunk + 1234), 99);  // The other mapping keeps the memory.
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), MiB(2));
  ASSERT_EQ(d.mem_unmap(base + kChunk, kChunk), abi::kSuccess);
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), Bytes());
}

TEST_F(RealMemory, FreshMemoryIsPoisonedOnlyIfAsked) {
  for (const bool poison : {true, false}) {
    Config config = SmallConfig();
    config.poison = poison;
    sim.reset();
    StartWithContext(config);
    const abi::DevicePtr base = Reserve(kChunk);
    MapNew(base);
    const unsigned char expected = poison ? 0xCD : 0;
    EXPECT_TRUE(std::all_of(Pointer(base), Pointer(base + kChunk), [&](unsigned char c) { return c == expected; }));
    abi::DevicePtr classic = 0;
    ASSERT_EQ(d.mem_alloc(&classic, 5000), abi::kSuccess);
    EXPECT_EQ(*Pointer(classic + 4999), expected);
  }
}

TEST_F(RealMemory, TheHostMayTouchWhatDevicesMay) {
  StartWithContext(SmallConfig());
  const abi::DevicePtr base = Reserve(4 * kChunk);
  const abi::MemHandle handle = MapNew(base);
  const abi::DevicePtr alias = base + kChunk;
  EXPECT_FALSE(FaultProbe::WriteFaults(Pointer(base)));
  EXPECT_TRUE(FaultProbe::ReadFaults(Pointer(alias)));  // Reserved only.
  ASSERT_EQ(d.mem_map(alias, kChunk, 0, handle, 0), abi::kSuccess);
  EXPECT_TRUE(FaultProbe::ReadFaults(Pointer(alias)));  // Mapped without access.
  ASSERT_EQ(Access(alias, kChunk, abi::kAccessRead), abi::kSuccess);
  EXPECT_FALSE(FaultProbe::ReadFaults(Pointer(alias)));
  EXPECT_TRUE(FaultProbe::WriteFaults(Pointer(alias)));
  ASSERT_EQ(Access(base, 2 * kChunk), abi::kSuccess);  // Both, of which one had it.
  EXPECT_FALSE(FaultProbe::WriteFaults(Pointer(alias + kChunk - 1)));
  EXPECT_TRUE(FaultProbe::ReadFaults(Pointer(alias + kChunk)));
  ASSERT_EQ(Access(base, kChunk, abi::kAccessNone), abi::kSuccess);
  EXPECT_TRUE(FaultProbe::ReadFaults(Pointer(base)));
  ASSERT_EQ(d.mem_unmap(base, 2 * kChunk), abi::kSuccess);
  EXPECT_TRUE(FaultProbe::ReadFaults(Pointer(alias)));
}

TEST_F(RealMemory, CopiesNeedNoHostAccess) {
  Config config = SmallConfig();
  config.strict_host_fault = true;
  StartWithContext(config);
  const abi::DevicePtr base = Reserve(2 * kChunk);
  MapNew(base);
  MapNew(base + kChunk);
  std::vector<unsigned char> in(kChunk + 100), out(kChunk + 100);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 7);
  // Across both chunks.
  ASSERT_EQ(d.memcpy_htod_async(base + 50, in.data(), in.size(), nullptr), abi::kSuccess);
  ASSERT_EQ(d.memcpy_dtoh_async(out.data(), base + 50, out.size(), nullptr), abi::kSuccess);
  EXPECT_EQ(in, out);
  EXPECT_TRUE(FaultProbe::ReadFaults(Pointer(base + 50)));
}

TEST_F(RealMemory, CopiesBetweenDeviceAndHostInEveryDirection) {
  StartWithContext(SmallConfig());
  abi::DevicePtr a = 0, b = 0;
  ASSERT_EQ(d.mem_alloc(&a, 3000), abi::kSuccess);
  ASSERT_EQ(d.mem_alloc(&b, 3000), abi::kSuccess);
  ASSERT_EQ(d.memset_d8_async(a, 0x11, 3000, nullptr), abi::kSuccess);
  ASSERT_EQ(d.memcpy_dtod_async(b + 1000, a, 2000, nullptr), abi::kSuccess);
  EXPECT_EQ(*Pointer(b + 999), 0xCD);
  EXPECT_EQ(*Pointer(b + 1000), 0x11);
  EXPECT_EQ(*Pointer(b + 2999), 0x11);
  // cuMemcpyAsync finds the direction out by itself.
  unsigned char host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  unsigned char other[8] = {};
  const auto ptr = [](void* p) { return DeviceAddress::FromPointer(p).value(); };
  ASSERT_EQ(d.memcpy_async(a, ptr(host), 8, nullptr), abi::kSuccess);
  ASSERT_EQ(d.memcpy_async(b, a, 8, nullptr), abi::kSuccess);
  ASSERT_EQ(d.memcpy_async(ptr(other), b, 8, nullptr), abi::kSuccess);
  EXPECT_EQ(std::memcmp(host, other, 8), 0);
}

TEST_F(RealMemory, ManyMovesWithContentsChecked) {
  Config config = SmallConfig();
  config.poison = false;
  StartWithContext(config);
  constexpr int kChunks = 16, kPlaces = 64;
  const abi::DevicePtr base = Reserve(kPlaces * kChunk);
  std::vector<abi::MemHandle> handles;
  std::vector<int> at;
  for (int i = 0; i < kChunks; ++i) {
    handles.push_back(MapNew(base + static_cast<size_t>(i) * kChunk));
    at.push_back(i);
    *Pointer(base + static_cast<size_t>(i) * kChunk + 17) = static_cast<unsigned char>(i + 1);
  }
  uint64_t random = 12345;
  for (int step = 0; step < 400; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const auto chunk = static_cast<size_t>((random >> 33) % kChunks);
    const int to = static_cast<int>((random >> 40) % kPlaces);
    if (std::find(at.begin(), at.end(), to) != at.end()) continue;
    ASSERT_EQ(d.mem_unmap(base + static_cast<size_t>(at[chunk]) * kChunk, kChunk), abi::kSuccess);
    const abi::DevicePtr place = base + static_cast<size_t>(to) * kChunk;
    ASSERT_EQ(d.mem_map(place, kChunk, 0, handles[chunk], 0), abi::kSuccess);
    ASSERT_EQ(Access(place, kChunk), abi::kSuccess);
    at[chunk] = to;
    ASSERT_EQ(*Pointer(place + 17), chunk + 1);
    Check();
  }
  EXPECT_EQ(sim->committed(DeviceOrdinal(0)), MiB(2) * kChunks);
}

TEST_F(RealMemory, TheKernelsMappingLimitLooksLikeAFullDevice) {
  uint64_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  if (limit == 0 || limit > 100000) GTEST_SKIP() << "vm.max_map_count is " << limit << ": too many mappings to make";
  Config config = SmallConfig();
  config.devices[0].total_memory = GiB(1);
  config.devices[0].granularity = KiB(4);
  config.poison = false;
  StartWithContext(config);
  // One page in two, all of the same memory: no two neighbours merge.
  const size_t page = KiB(4).count();
  const abi::DevicePtr base = Reserve(2 * limit * page);
  const abi::MemHandle handle = Create(page);
  uint64_t mapped = 0;
  abi::Result result = abi::kSuccess;
  while (mapped < limit && (result = d.mem_map(base + 2 * mapped * page, page, 0, handle, 0)) == abi::kSuccess) {
    ++mapped;
  }
  EXPECT_EQ(result, abi::kOutOfMemory);
  EXPECT_EQ(sim->ledger().mappings, mapped);
  Check();
  // Unmapping needs no more mappings than there are, so there is a way back.
  for (uint64_t i = 0; i < mapped; ++i) ASSERT_EQ(d.mem_unmap(base + 2 * i * page, page), abi::kSuccess);
  EXPECT_EQ(d.mem_map(base, page, 0, handle, 0), abi::kSuccess);
}

}  // namespace
}  // namespace expanse::sim

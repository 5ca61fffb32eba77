// Requests of every size: served, aligned, apart from each other, or refused cleanly.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/conformance/conformance_test.h"

namespace expanse {
namespace {

using RequestsConformance = ConformanceTest;

// The byte that a block is filled with.
unsigned char PatternOf(AddressRange block) {
  return static_cast<unsigned char>(1 + (block.begin.value() / 512 + block.size.count()) % 250);
}

TEST_P(RequestsConformance, SizesFromOneByteToMostOfTheDevice) {
  Create();
  const Bytes most = RoundDown(device_->usable() / 4 * 3, MiB(2));
  for (Bytes size : {Bytes(1), Bytes(255), Bytes(512), Bytes(513), KiB(4) + Bytes(1), MiB(1) - Bytes(1), MiB(1),
                     MiB(1) + Bytes(1), MiB(2), MiB(10) - Bytes(1), MiB(10), MiB(33) + Bytes(7), most}) {
    SCOPED_TRACE(ToString(size));
    device_->Synchronize();
    const AddressRange block = Allocate(size);
    device_->Fill(block, 0x5A, StreamHandle());
    const Bytes edge = std::min(size, KiB(4));
    EXPECT_TRUE(device_->Holds({block.begin, edge}, 0x5A, StreamHandle()));
    EXPECT_TRUE(device_->Holds({block.end() - edge, edge}, 0x5A, StreamHandle()));
    Free(block);
  }
}

TEST_P(RequestsConformance, LiveBlocksStayApartAndKeepTheirContents) {
  Create();
  constexpr uint32_t kSeed = 20261130;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::vector<AddressRange> blocks;
  Bytes live;
  const auto free_one = [&](size_t index) {
    const AddressRange block = blocks[index];
    EXPECT_TRUE(device_->Holds(block, PatternOf(block), StreamHandle())) << ToString(block);
    Free(block);
    live -= block.size;
    blocks[index] = blocks.back();
    blocks.pop_back();
  };
  for (int i = 0; i < 400; ++i) {
    const Bytes size = Bytes(1 + (uint64_t{random()} >> (10 + random() % 20)));  // to 4 MiB, small ones more often
    if (live + size < MiB(64) && random() % 5 < 3) {
      const AddressRange block = Allocate(size);
      device_->Fill(block, PatternOf(block), StreamHandle());
      blocks.push_back(block);
      live += size;
    } else if (!blocks.empty()) {
      free_one(random() % blocks.size());
    }
  }
  while (!blocks.empty()) free_one(blocks.size() - 1);
  EXPECT_EQ(allocator_->figures().live, Bytes());
  EXPECT_EQ(allocator_->figures().allocated, Bytes());
}

TEST_P(RequestsConformance, ZeroBytesAreRefused) {
  Create();
  EXPECT_EQ(allocator_->Allocate(Bytes(), StreamHandle()).status().code(), absl::StatusCode::kInvalidArgument);
  Check();
}

TEST_P(RequestsConformance, MoreThanTheDeviceIsRefusedAndServiceGoesOn) {
  Create();
  const AddressRange held = Allocate(MiB(3));
  device_->Fill(held, 0x77, StreamHandle());
  for (Bytes size : {device_->total() + Bytes(1), device_->total() * 2, TiB(64), Bytes(uint64_t{1} << 60),
                     Bytes((uint64_t{1} << 63) + 1), Bytes(std::numeric_limits<uint64_t>::max())}) {
    SCOPED_TRACE(ToString(size));
    ExpectOutOfMemory(size);
  }
  device_->Synchronize();
  const AddressRange next = Allocate(MiB(20));
  EXPECT_TRUE(device_->Holds(held, 0x77, StreamHandle()));
  Free(next);
  Free(held);
}

TEST_P(RequestsConformance, AFullDeviceServesAgainWhatIsGivenBack) {
  Create();
  const Bytes size = RoundDown(device_->usable() / 16, MiB(2));
  std::vector<AddressRange> blocks;
  while (true) {
    auto address = allocator_->Allocate(size, StreamHandle());
    if (address.ok()) live_[address->value()] = {*address, size};
    Check();
    if (!address.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
      break;
    }
    ASSERT_LT(blocks.size(), 64);
    blocks.push_back({*address, size});
  }
  // A chunk or segment border may cost a block, and `late` memory that went back is still away.
  EXPECT_GE(blocks.size(), device_name() == "late" ? 10 : 14);
  Free(blocks.front());
  device_->Synchronize();
  blocks.front() = Allocate(size);
  for (AddressRange block : blocks) Free(block);
  device_->Synchronize();
  Free(Allocate(RoundDown(device_->usable() / 4 * 3, MiB(2))));
}

TEST_P(RequestsConformance, NeitherReservedNorTheDriverExceedsTheLimit) {
  bench::BenchAllocatorOptions options = Options();
  options.limit = MiB(96);
  Create(options);
  std::vector<AddressRange> blocks;
  while (true) {
    auto address = allocator_->Allocate(MiB(7), StreamHandle());
    if (address.ok()) live_[address->value()] = {*address, MiB(7)};
    Check();
    EXPECT_LE(allocator_->figures().peak_reserved, MiB(96));
    if (!address.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
      break;
    }
    ASSERT_LT(blocks.size(), 64);
    blocks.push_back({*address, MiB(7)});
  }
  EXPECT_GE(blocks.size(), 8);
  for (AddressRange block : blocks) Free(block);
  ExpectOutOfMemory(MiB(97));
  device_->Synchronize();
  Free(Allocate(MiB(80)));
}

EXPANSE_INSTANTIATE_CONFORMANCE(RequestsConformance);

}  // namespace
}  // namespace expanse

#include "bench/replay/contents.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::HasSubstr;

// Memory that holds what was written to it, byte by byte.
class SparseMemory final : public ContentsAccess {
 public:
  absl::Status Write(DeviceAddress address, absl::Span<const uint8_t> bytes) override {
    for (const uint8_t byte : bytes) bytes_[address.value()] = byte, address += Bytes(1);
    return absl::OkStatus();
  }
  absl::Status Read(DeviceAddress address, absl::Span<uint8_t> bytes) override {
    for (uint8_t& byte : bytes) byte = bytes_[address.value()], address += Bytes(1);
    return absl::OkStatus();
  }
  std::map<uint64_t, uint8_t> bytes_;
};

TEST(Contents, TouchesTheEndsAndTheBoundariesWithin) {
  const DeviceAddress begin(MiB(2).count() * 10 + 512);
  const AddressRange block{begin, MiB(5)};
  const std::vector<AddressRange> expected = {
      {begin, Bytes(64)},
      {DeviceAddress(MiB(2).count() * 11 - 32), Bytes(64)},
      {DeviceAddress(MiB(2).count() * 12 - 32), Bytes(64)},
      {block.end() - Bytes(64), Bytes(64)},
  };
  EXPECT_EQ(TouchedRanges(block), expected);
}

TEST(Contents, RangesStayWithinTheBlockInOrderWithoutOverlap) {
  for (const uint64_t before : {0u, 1u, 16u, 31u, 32u, 63u, 64u, 100u, 512u}) {
    for (const uint64_t size : {1u, 16u, 63u, 64u, 65u, 100u, 127u, 128u, 129u, 1000u, 2097152u, 2097153u, 4194304u}) {
      const AddressRange block{DeviceAddress(MiB(2).count() * 10 - before), Bytes(size)};
      DeviceAddress last = block.begin;
      const std::vector<AddressRange> ranges = TouchedRanges(block);
      for (const AddressRange& range : ranges) {
        EXPECT_GE(range.begin, last);
        EXPECT_FALSE(range.size.is_zero());
        EXPECT_TRUE(block.Contains(range));
        last = range.end();
      }
      EXPECT_EQ(ranges.front().begin, block.begin);
      EXPECT_EQ(last, block.end()) << "the last byte is touched";
    }
  }
}

TEST(Contents, FindsWhatItWrote) {
  SparseMemory memory;
  const AddressRange block{DeviceAddress(MiB(3).count()), MiB(3)};
  ASSERT_TRUE(WriteContents(memory, block, 7).ok());
  EXPECT_TRUE(CheckContents(memory, block, 7).ok());
  EXPECT_EQ(CheckContents(memory, block, 8).code(), absl::StatusCode::kDataLoss) << "another block's contents";
}

TEST(Contents, NamesTheOffsetOfEachCorruptedByte) {
  SparseMemory memory;
  const AddressRange block{DeviceAddress(MiB(3).count()), MiB(3)};
  ASSERT_TRUE(WriteContents(memory, block, 7).ok());
  for (auto& [address, byte] : memory.bytes_) {
    byte ^= 0x10;
    const absl::Status status = CheckContents(memory, block, 7);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("offset ", address - block.begin.value(), ":")));
    byte ^= 0x10;
  }
  EXPECT_TRUE(CheckContents(memory, block, 7).ok());
}

}  // namespace
}  // namespace expanse::bench

#include "tests/stress/block_contents.h"

#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "vmm/units.h"

namespace expanse::stress {
namespace {

// A block in memory of this process, at any alignment.
class Buffer {
 public:
  explicit Buffer(size_t size) : bytes_(size) {}
  [[nodiscard]] AddressRange range() { return {DeviceAddress::FromPointer(bytes_.data()), Bytes(bytes_.size())}; }
  [[nodiscard]] uint8_t& operator[](size_t i) { return bytes_[i]; }

 private:
  std::vector<uint8_t> bytes_;
};

TEST(BlockContents, AreFoundWhereTheyWereWrittenForEverySize) {
  for (const size_t size : {1, 4, 63, 64, 65, 127, 128, 4096, 100'000}) {
    Buffer buffer(size);
    WriteContents(buffer.range(), KiB(4), 7);
    EXPECT_TRUE(CheckContents(buffer.range(), KiB(4), 7).ok()) << size;
    buffer[0] ^= 1;
    EXPECT_EQ(CheckContents(buffer.range(), KiB(4), 7).code(), absl::StatusCode::kDataLoss) << size;
    buffer[0] ^= 1;
    buffer[size - 1] ^= 0x80;
    EXPECT_EQ(CheckContents(buffer.range(), KiB(4), 7).code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST(BlockContents, DamageOnEitherSideOfEachBoundaryIsSeen) {
  Buffer buffer(20'000);
  const AddressRange range = buffer.range();
  WriteContents(range, KiB(4), 1);
  int boundaries = 0;
  for (size_t i = 1; i < 20'000; ++i) {
    if ((range.begin.value() + i) % 4096 != 0) continue;
    ++boundaries;
    for (const size_t at : {i - 1, i}) {
      buffer[at] ^= 4;
      EXPECT_FALSE(CheckContents(range, KiB(4), 1).ok()) << at;
      buffer[at] ^= 4;
    }
  }
  EXPECT_GE(boundaries, 4);
  EXPECT_TRUE(CheckContents(range, KiB(4), 1).ok());
}

TEST(BlockContents, OtherKeysAreTakenForDamage) {
  Buffer buffer(4);
  int taken = 0;
  for (uint64_t key = 0; key < 1000; ++key) {
    WriteContents(buffer.range(), KiB(4), key);
    taken += CheckContents(buffer.range(), KiB(4), key + 1).ok() ? 0 : 1;
  }
  EXPECT_GT(taken, 990);
}

}  // namespace
}  // namespace expanse::stress

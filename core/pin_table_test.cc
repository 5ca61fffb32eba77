#include "core/pin_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

AddressRange At(uint64_t begin, uint64_t size) { return {DeviceAddress(begin), Bytes(size)}; }

class PinTableTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(pins_.CheckInvariants(), absl::OkStatus()); }
  std::vector<ChunkId> Unpin(AddressRange range) {
    const absl::StatusOr<std::vector<ChunkId>> chunks = pins_.Unpin(range);
    EXPECT_TRUE(chunks.ok()) << chunks.status();
    EXPECT_EQ(pins_.CheckInvariants(), absl::OkStatus());
    return chunks.value_or(std::vector<ChunkId>());
  }

  PinTable pins_;
};

TEST_F(PinTableTest, CountsTheRangesThatTouchAChunk) {
  EXPECT_FALSE(pins_.IsPinned(ChunkId(5)));
  EXPECT_FALSE(pins_.IsPinned(ChunkId()));
  EXPECT_THAT(pins_.Pin(At(100, 20), {ChunkId(5), ChunkId(6)}), ElementsAre(ChunkId(5), ChunkId(6)));
  EXPECT_THAT(pins_.Pin(At(110, 20), {ChunkId(6), ChunkId(2)}), ElementsAre(ChunkId(2)));
  EXPECT_EQ(pins_.CheckInvariants(), absl::OkStatus());
  EXPECT_THAT(Unpin(At(100, 20)), ElementsAre(ChunkId(5)));
  EXPECT_TRUE(pins_.IsPinned(ChunkId(6)));
  EXPECT_FALSE(pins_.IsPinned(ChunkId(5)));
  EXPECT_THAT(Unpin(At(110, 20)), ElementsAre(ChunkId(6), ChunkId(2)));
  EXPECT_TRUE(pins_.empty());
}

TEST_F(PinTableTest, ARangeIsUnpinnedAsOftenAsItWasPinned) {
  EXPECT_THAT(pins_.Pin(At(512, 1), {ChunkId(0)}), ElementsAre(ChunkId(0)));
  EXPECT_THAT(pins_.Pin(At(512, 1), {ChunkId(0)}), IsEmpty());
  EXPECT_THAT(Unpin(At(512, 1)), IsEmpty());
  EXPECT_THAT(Unpin(At(512, 1)), ElementsAre(ChunkId(0)));
  const absl::Status again = pins_.Unpin(At(512, 1)).status();
  EXPECT_TRUE(absl::IsNotFound(again));
  EXPECT_NE(std::string(again.message()).find("0x200"), std::string::npos) << again;
}

TEST_F(PinTableTest, OnlyTheVeryRangeIsUnpinned) {
  EXPECT_THAT(pins_.Pin(At(512, 1024), {ChunkId(0)}), ElementsAre(ChunkId(0)));
  EXPECT_TRUE(absl::IsNotFound(pins_.Unpin(At(512, 512)).status()));
  EXPECT_TRUE(absl::IsNotFound(pins_.Unpin(At(1024, 512)).status()));
  EXPECT_TRUE(pins_.IsPinned(ChunkId(0)));
}

}  // namespace
}  // namespace expanse

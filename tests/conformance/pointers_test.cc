// Pointers that are not live blocks are refused, and nothing changes.

#include <vector>

#include "tests/conformance/conformance_test.h"

namespace expanse {
namespace {

class PointersConformance : public ConformanceTest {
 protected:
  void ExpectRefused(DeviceAddress address) {
    SCOPED_TRACE(ToString(address));
    EXPECT_EQ(allocator_->Free(address, StreamHandle()).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(allocator_->RecordUse(address, StreamHandle()).code(), absl::StatusCode::kInvalidArgument);
    Check();
  }
};

TEST_P(PointersConformance, NullAndForeignPointersAreRefused) {
  Create();
  const AddressRange block = Allocate(MiB(3));
  int host = 0;
  ExpectRefused(DeviceAddress());
  ExpectRefused(DeviceAddress::FromPointer(&host));
  ExpectRefused(DeviceAddress(uint64_t{1}));
  ExpectRefused(DeviceAddress(~uint64_t{0}));
  ExpectRefused(block.begin + TiB(1));
  Free(block);
}

TEST_P(PointersConformance, PointersIntoABlockAndBesideItAreRefused) {
  Create();
  const AddressRange block = Allocate(MiB(3));
  ExpectRefused(block.begin + Bytes(1));
  ExpectRefused(block.begin + Bytes(512));
  ExpectRefused(block.begin + MiB(2));
  ExpectRefused(block.end());
  ExpectRefused(block.begin - Bytes(512));
  Free(block);
}

TEST_P(PointersConformance, ASecondFreeIsRefused) {
  Create();
  const AddressRange neighbour = Allocate(MiB(3));
  const AddressRange block = Allocate(MiB(3));
  Free(block);
  ExpectRefused(block.begin);
  Free(neighbour);
  ExpectRefused(block.begin);
  ExpectRefused(neighbour.begin);
}

TEST_P(PointersConformance, BlocksThatWaitForAnotherStreamAreNotLive) {
  Create();
  const StreamHandle other = device_->NewStream();
  const AddressRange block = Allocate(MiB(3));
  RecordUse(block, other);
  Free(block);
  ExpectRefused(block.begin);
}

EXPANSE_INSTANTIATE_CONFORMANCE(PointersConformance);

}  // namespace
}  // namespace expanse

// What --touch writes into blocks and expects to find there.

#ifndef EXPANSE_BENCH_REPLAY_CONTENTS_H_
#define EXPANSE_BENCH_REPLAY_CONTENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "vmm/units.h"

namespace expanse::bench {

// Where memory of the device is read and written. `address` is a device address.
class ContentsAccess {
 public:
  virtual ~ContentsAccess() = default;
  [[nodiscard]] virtual absl::Status Write(DeviceAddress address, absl::Span<const uint8_t> bytes) = 0;
  [[nodiscard]] virtual absl::Status Read(DeviceAddress address, absl::Span<uint8_t> bytes) = 0;
};

// The ranges of a block that are touched, in ascending order, without overlap: its first and last 64 bytes and the 64
// bytes around each address within it that is a multiple of 2 MiB, where chunks meet.
[[nodiscard]] std::vector<AddressRange> TouchedRanges(AddressRange block);

// Writes a pattern that depends on `key` and the offset in the block into its touched ranges.
[[nodiscard]] absl::Status WriteContents(ContentsAccess& access, AddressRange block, uint64_t key);

// DATA_LOSS, naming the offset in the block, the byte found and the byte expected, where the pattern is not there.
[[nodiscard]] absl::Status CheckContents(ContentsAccess& access, AddressRange block, uint64_t key);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_CONTENTS_H_

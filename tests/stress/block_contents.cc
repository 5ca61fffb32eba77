#include "tests/stress/block_contents.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace expanse::stress {
namespace {

constexpr Bytes kTouched(64);

uint8_t PatternAt(uint64_t key, uint64_t offset) {
  // Any odd multipliers will do: the high byte depends on every bit of both.
  return static_cast<uint8_t>(((key + 1) * 0x9e3779b97f4a7c15 ^ offset * 0xd1342543de82ef95) >> 56);
}

// Calls `visit` with [begin, end) clipped to the block; false ends it.
template <typename Visit>
bool VisitTouched(AddressRange block, Bytes chunk, Visit visit) {
  const auto clipped = [&block, &visit](DeviceAddress begin, DeviceAddress end) {
    return visit(std::max(begin, block.begin), std::min(end, block.end()));
  };
  if (!clipped(block.begin, block.begin + kTouched)) return false;
  const uint64_t first = block.begin.value() / chunk.count() + 1;
  for (DeviceAddress boundary(first * chunk.count()); boundary < block.end(); boundary += chunk) {
    if (!clipped(boundary - kTouched / 2, boundary + kTouched / 2)) return false;
  }
  return clipped(block.end() - kTouched, block.end());
}

}  // namespace

void WriteContents(AddressRange block, Bytes chunk, uint64_t key) {
  VisitTouched(block, chunk, [&](DeviceAddress begin, DeviceAddress end) {
    for (DeviceAddress at = begin; at < end; at += Bytes(1)) {
      *static_cast<uint8_t*>(at.ptr()) = PatternAt(key, (at - block.begin).count());
    }
    return true;
  });
}

absl::Status CheckContents(AddressRange block, Bytes chunk, uint64_t key) {
  absl::Status status;
  VisitTouched(block, chunk, [&](DeviceAddress begin, DeviceAddress end) {
    for (DeviceAddress at = begin; at < end; at += Bytes(1)) {
      const uint8_t found = *static_cast<const uint8_t*>(at.ptr());
      const uint8_t expected = PatternAt(key, (at - block.begin).count());
      if (found == expected) continue;
      status = absl::DataLossError(absl::StrFormat("offset %d of %d holds 0x%02x, expected 0x%02x",
                                                   (at - block.begin).count(), block.size.count(), found, expected));
      return false;
    }
    return true;
  });
  return status;
}

}  // namespace expanse::stress

#include "bench/replay/contents.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace expanse::bench {
namespace {

constexpr Bytes kTouched = Bytes(64);
constexpr Bytes kBoundary = MiB(2);

// A bijection of 64-bit words in which every bit of the input moves about half of the output (the finaliser of
// Steele, Lea and Flood's SplitMix generator, 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

uint8_t PatternAt(uint64_t key, uint64_t offset) {
  return static_cast<uint8_t>(Mix(key ^ Mix(offset / 8)) >> (offset % 8 * 8));
}

}  // namespace

std::vector<AddressRange> TouchedRanges(AddressRange block) {
  std::vector<AddressRange> ranges;
  // Appends [begin, end), less what an earlier range has already.
  auto add = [&ranges, block](DeviceAddress begin, DeviceAddress end) {
    begin = std::max(begin, ranges.empty() ? block.begin : ranges.back().end());
    end = std::min(end, block.end());
    if (begin < end) ranges.push_back({begin, end - begin});
  };
  add(block.begin, block.begin + kTouched);
  const uint64_t first = block.begin.value() / kBoundary.count() + 1;
  for (uint64_t i = first; i * kBoundary.count() < block.end().value(); ++i) {
    const DeviceAddress boundary(i * kBoundary.count());
    add(boundary - kTouched / 2, boundary + kTouched / 2);
  }
  add(block.size < kTouched ? block.begin : block.end() - kTouched, block.end());
  return ranges;
}

absl::Status WriteContents(ContentsAccess& access, AddressRange block, uint64_t key) {
  std::vector<uint8_t> bytes;
  for (const AddressRange& range : TouchedRanges(block)) {
    const uint64_t offset = (range.begin - block.begin).count();
    bytes.resize(range.size.count());
    for (uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = PatternAt(key, offset + i);
    if (absl::Status status = access.Write(range.begin, bytes); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckContents(ContentsAccess& access, AddressRange block, uint64_t key) {
  std::vector<uint8_t> bytes;
  for (const AddressRange& range : TouchedRanges(block)) {
    const uint64_t offset = (range.begin - block.begin).count();
    bytes.resize(range.size.count());
    if (absl::Status status = access.Read(range.begin, absl::MakeSpan(bytes)); !status.ok()) return status;
    for (uint64_t i = 0; i < bytes.size(); ++i) {
      const uint8_t expected = PatternAt(key, offset + i);
      if (bytes[i] != expected) {
        return absl::DataLossError(
            absl::StrFormat("corrupted at offset %d: found 0x%02x, expected 0x%02x", offset + i, bytes[i], expected));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace expanse::bench

// Sizes and counts as people write them on a command line.

#ifndef EXPANSE_BENCH_TOOL_SIZE_H_
#define EXPANSE_BENCH_TOOL_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "vmm/units.h"

namespace expanse::tool {

// "4096", "64KiB", "1.5 GiB", "80GB": a number, fractions allowed, and B, KiB, MiB, GiB, TiB, PiB, KB, MB, GB, TB or PB
// in any case; none means bytes. Rounded down to whole bytes. INVALID_ARGUMENT names the text and what was expected; a
// size of zero is one.
[[nodiscard]] absl::StatusOr<Bytes> ParseSize(const std::string& text);

// A size, or, as "1.01x", a multiple of something that is only known later.
struct RelativeSize {
  Bytes bytes;
  double multiple = 0;  // zero: `bytes` it is
  // Multiples are rounded up to whole 2 MiB, as devices come: at least one of them, at most about 2^63 bytes.
  [[nodiscard]] Bytes Of(Bytes whole) const;
};
[[nodiscard]] absl::StatusOr<RelativeSize> ParseRelativeSize(const std::string& text);

// A whole number that is not negative.
[[nodiscard]] absl::StatusOr<uint64_t> ParseCount(const std::string& text);

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_SIZE_H_

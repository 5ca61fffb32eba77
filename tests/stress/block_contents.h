// What stress programs keep in their blocks.

#ifndef EXPANSE_TESTS_STRESS_BLOCK_CONTENTS_H_
#define EXPANSE_TESTS_STRESS_BLOCK_CONTENTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse::stress {

// Writes a pattern that differs between keys and between offsets into a block: its first and last 64 bytes, and 64
// bytes around each multiple of `chunk` within it, where one chunk ends and another one begins. The host writes; the
// block must lie in a simulated device's real memory.
void WriteContents(AddressRange block, Bytes chunk, uint64_t key);

// DATA_LOSS naming the first offset where the pattern is not what was written, what was found and what was expected.
[[nodiscard]] absl::Status CheckContents(AddressRange block, Bytes chunk, uint64_t key);

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_BLOCK_CONTENTS_H_

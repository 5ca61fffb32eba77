// What an out-of-memory error tells.

#ifndef EXPANSE_CORE_OUT_OF_MEMORY_H_
#define EXPANSE_CORE_OUT_OF_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "vmm/device.h"
#include "vmm/units.h"

namespace expanse {

// The state of an allocator at the moment when a request could not be served.
struct Shortage {
  Bytes asked;
  Bytes rounded;
  Bytes live;
  Bytes allocated;
  Bytes pending;
  std::vector<std::string> pending_on;  // the streams, each once
  Bytes idle;
  Bytes pinned;
  Bytes partly_used;   // free bytes of chunks that are also in use
  Bytes largest_free;  // the largest free mapped range for this stream and size class
  Bytes reserved;
  Bytes quarantined;
  std::optional<Bytes> limit;
  std::string pool;  // the name of the pool that was asked
  std::optional<Bytes> pool_limit;
  Bytes pool_reserved;
  bool pool_is_full = false;         // it is the pool's limit that was in the way
  std::optional<MemoryInfo> device;  // none: the driver did not say
  Bytes chunk_size;
  Bytes granularity;
  uint64_t handles_left = 0;
  Bytes addresses_left;
  std::string reason;  // what the last attempt ended with
};

// The setting that would have let the request succeed, and why; empty if none would.
[[nodiscard]] std::string HelpfulSetting(const Shortage& shortage);

// RESOURCE_EXHAUSTED with everything above in words.
[[nodiscard]] absl::Status OutOfMemoryError(const Shortage& shortage);

}  // namespace expanse

#endif  // EXPANSE_CORE_OUT_OF_MEMORY_H_

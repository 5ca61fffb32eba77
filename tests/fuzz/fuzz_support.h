// What the fuzz targets have in common.

#ifndef EXPANSE_TESTS_FUZZ_FUZZ_SUPPORT_H_
#define EXPANSE_TESTS_FUZZ_FUZZ_SUPPORT_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "bench/trace/trace.h"

namespace expanse::fuzz {

// Ends the process with `what` unless `condition` holds: how a fuzz target reports a property that fails.
void Require(bool condition, absl::string_view what);

// Requires what every reader promises of a trace it accepted: it is well-formed, and unless its labels cannot be
// written, it writes and reads back the same.
void RequireSoundTrace(const bench::Trace& trace);

// Counts what operator new hands out while it lives, on all threads. At most one at a time.
class MemoryMeter {
 public:
  MemoryMeter();
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  // The most bytes that were held at once.
  [[nodiscard]] size_t peak() const;

  // Requires the readers' promise: within 64 MiB plus 64 times the size of the decompressed input. The first term is
  // taken as 512 KiB here, for a small input would otherwise show nothing.
  void RequireWithinBound(size_t decompressed_size) const;
};

inline absl::string_view AsText(const uint8_t* data, size_t size) {
  return absl::string_view(reinterpret_cast<const char*>(data), size);
}

}  // namespace expanse::fuzz

#endif  // EXPANSE_TESTS_FUZZ_FUZZ_SUPPORT_H_

// The base format's reader on any text: never crashes, keeps its memory bound, and what it accepts is a sound trace.

#include "absl/strings/match.h"
#include "bench/trace/base_format.h"
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fuzz = expanse::fuzz;
  absl::StatusOr<expanse::bench::Trace> trace;
  {
    const fuzz::MemoryMeter meter;
    trace = expanse::bench::ParseBaseFormat(fuzz::AsText(data, size), "fuzz");
    meter.RequireWithinBound(size);
  }
  if (trace.ok()) {
    fuzz::RequireSoundTrace(*trace);
  } else {
    fuzz::Require(absl::StartsWith(trace.status().message(), "fuzz:"), "an error names the file");
  }
  return 0;
}

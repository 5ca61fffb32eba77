// The whole way from the bytes of a snapshot to a trace: never crashes or hangs, keeps its memory bound, and what it
// accepts is a sound trace.

#include "absl/strings/match.h"
#include "bench/trace/reader.h"
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace bench = expanse::bench;
  namespace fuzz = expanse::fuzz;
  bench::Input input;
  input.name = "fuzz";
  input.text = std::string(fuzz::AsText(data, size));
  absl::StatusOr<bench::LoadedTrace> loaded;
  {
    const fuzz::MemoryMeter meter;
    loaded = bench::ParseTrace(input);
    meter.RequireWithinBound(size);
  }
  if (loaded.ok()) {
    fuzz::RequireSoundTrace(loaded->trace);
  } else {
    fuzz::Require(absl::StartsWith(loaded.status().message(), "fuzz:"), "an error names the file");
  }
  return 0;
}

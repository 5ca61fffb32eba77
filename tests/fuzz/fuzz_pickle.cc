// The restricted pickle reader on any bytes: never crashes, keeps its memory bound, and every value it made can be
// reached and described.

#include <vector>

#include "absl/strings/match.h"
#include "bench/trace/pickle.h"
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace bench = expanse::bench;
  namespace fuzz = expanse::fuzz;
  const fuzz::MemoryMeter meter;
  const absl::StatusOr<bench::Pickle> pickle = bench::Pickle::Parse(fuzz::AsText(data, size), "fuzz");
  meter.RequireWithinBound(size);
  if (!pickle.ok()) {
    fuzz::Require(absl::StartsWith(pickle.status().message(), "fuzz: byte "), "an error names file and offset");
    return 0;
  }
  fuzz::Require(pickle->consumed() <= size, "no more is read than there is");
  // Values may share one another or hold themselves: the walk is bounded by steps.
  std::vector<bench::PickleValue> open = {pickle->root()};
  for (size_t steps = 0; steps < 1000 && !open.empty(); ++steps) {
    const bench::PickleValue value = open.back();
    open.pop_back();
    fuzz::Require(value.Describe().size() <= 300, "a description is short");
    if (value.AsInt64().has_value() && *value.AsInt64() >= 0) {
      fuzz::Require(value.AsUint64() == static_cast<uint64_t>(*value.AsInt64()), "an integer has one value");
    }
    size_t items = 0;
    for (bench::PickleCursor cursor(value); cursor.HasNext() && items < 100; ++items) open.push_back(cursor.Next());
    fuzz::Require(items == 100 || items == value.size() * (value.is_dict() ? size_t{2} : size_t{1}),
                  "the size is the number of items");
  }
  return 0;
}

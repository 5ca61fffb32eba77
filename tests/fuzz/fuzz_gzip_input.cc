// The decoder of gzip on any bytes: never crashes, never holds more than it may, and gives the same however the file is
// cut into pieces. The first byte chooses the pieces.

#include <algorithm>

#include "bench/trace/input.h"
#include "tests/fuzz/fuzz_support.h"

namespace {

constexpr expanse::Bytes kMost = expanse::KiB(64);

absl::StatusOr<expanse::bench::Input> Decode(absl::string_view file, size_t piece) {
  expanse::bench::InputDecoder decoder("fuzz", kMost);
  for (; !file.empty(); file.remove_prefix(std::min(piece, file.size()))) {
    const absl::Status status = decoder.Feed(file.substr(0, piece));
    if (!status.ok()) return status;
  }
  return decoder.Finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fuzz = expanse::fuzz;
  if (size == 0) return 0;
  const absl::string_view file = fuzz::AsText(data + 1, size - 1);
  absl::StatusOr<expanse::bench::Input> whole;
  {
    const fuzz::MemoryMeter meter;
    whole = Decode(file, std::max<size_t>(file.size(), 1));
    fuzz::Require(meter.peak() <= (size_t{256} << 10) + 4 * kMost.count(), "no more is held than the limit allows");
  }
  const absl::StatusOr<expanse::bench::Input> pieces = Decode(file, size_t{1} + data[0] % 7);
  fuzz::Require(whole.status().code() == pieces.status().code(), "pieces make no difference to the outcome");
  if (whole.ok()) {
    fuzz::Require(whole->text == pieces->text, "pieces make no difference to the text");
    fuzz::Require(whole->text.size() <= kMost.count(), "the limit holds");
    fuzz::Require(whole->compressed || whole->text == file, "what is not gzip is kept as it is");
  }
  return 0;
}

// What reader and writer of the base format agree on.

#ifndef EXPANSE_BENCH_TRACE_BASE_FORMAT_TEXT_H_
#define EXPANSE_BENCH_TRACE_BASE_FORMAT_TEXT_H_

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace expanse::bench {

inline constexpr absl::string_view kBaseFormatHeader = "op,id,bytes,stream";

inline bool HasControlCharacter(absl::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); });
}

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_BASE_FORMAT_TEXT_H_

// Values from files, as messages show them.

#ifndef EXPANSE_BENCH_TRACE_QUOTE_H_
#define EXPANSE_BENCH_TRACE_QUOTE_H_

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace expanse::bench {

// In single quotes, printable, and short whatever the file holds.
inline std::string Quote(absl::string_view value) {
  constexpr size_t kLongest = 60;
  return absl::StrCat("'", absl::CHexEscape(value.substr(0, kLongest)), value.size() > kLongest ? "..." : "", "'");
}

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_QUOTE_H_

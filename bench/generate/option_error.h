// The errors of generators about what they were told.

#ifndef EXPANSE_BENCH_GENERATE_OPTION_ERROR_H_
#define EXPANSE_BENCH_GENERATE_OPTION_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace expanse::bench {

// INVALID_ARGUMENT: "--layers 81: expected a multiple of pp * vpp = 40". `option` is spelled as on the command line.
template <typename Value>
absl::Status UnexpectedOption(absl::string_view option, Value value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("--", option, " ", value, ": expected ", expected));
}

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_OPTION_ERROR_H_

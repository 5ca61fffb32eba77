// Tells what a reader passed over.

#ifndef EXPANSE_BENCH_TRACE_UNKNOWN_NAMES_H_
#define EXPANSE_BENCH_TRACE_UNKNOWN_NAMES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "bench/trace/pickle.h"

namespace expanse::bench {

// Names that the file uses and this reader does not know, and how often. Keeps a few names, however many there are.
class UnknownNames {
 public:
  void Add(PickleValue name) {
    constexpr size_t kMostNames = 8;
    ++total_;
    if (names_.size() < kMostNames) names_.insert(name.Describe());
  }
  void Warn(absl::string_view file, absl::string_view what, std::vector<std::string>& warnings) const {
    if (total_ == 0) return;
    warnings.push_back(
        absl::StrCat(file, ": ", total_, " ", what, " not known here, ignored: ", absl::StrJoin(names_, ", ")));
  }

 private:
  uint64_t total_ = 0;
  std::set<std::string> names_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_UNKNOWN_NAMES_H_

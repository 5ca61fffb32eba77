#include "bench/replay/fit.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace expanse::bench {
namespace {

// Capacities in units of kFitResolution. Invariant: `answers_` holds every probe made.
class Search {
 public:
  Search(uint64_t lower, uint64_t upper, const FitProbe& probe) : lower_(lower), upper_(upper), probe_(probe) {}

  absl::StatusOr<std::optional<uint64_t>> Run() {
    absl::StatusOr<std::optional<uint64_t>> found = Above(lower_);
    while (found.ok() && found->has_value()) {
      absl::StatusOr<std::optional<uint64_t>> failure = FailureAbove(**found);
      if (!failure.ok()) return failure.status();
      if (!failure->has_value()) return found;
      if (**failure == upper_) return std::nullopt;
      found = Above(**failure + 1);
    }
    return found;
  }

 private:
  absl::StatusOr<bool> Runs(uint64_t units) {
    const auto known = answers_.find(units);
    if (known != answers_.end()) return known->second;
    absl::StatusOr<bool> answer = probe_(kFitResolution * units);
    if (answer.ok()) answers_.emplace(units, *answer);
    return answer;
  }

  // The first capacity from `start` that runs, as far as doubling steps and bisection see.
  absl::StatusOr<std::optional<uint64_t>> Above(uint64_t start) {
    uint64_t step = 1;
    uint64_t runs = start;
    std::optional<uint64_t> fails;
    while (true) {
      absl::StatusOr<bool> answer = Runs(runs);
      if (!answer.ok()) return answer.status();
      if (*answer) break;
      if (runs == upper_) return std::nullopt;
      fails = runs;
      runs = std::min(runs + step, upper_);
      step *= 2;
    }
    if (!fails.has_value()) return runs;
    uint64_t below = *fails;
    while (runs - below > 1) {
      const uint64_t middle = below + (runs - below) / 2;
      absl::StatusOr<bool> answer = Runs(middle);
      if (!answer.ok()) return answer.status();
      (*answer ? runs : below) = middle;
    }
    return runs;
  }

  // The largest capacity probed so far or now, above `found`, that fails.
  absl::StatusOr<std::optional<uint64_t>> FailureAbove(uint64_t found) {
    for (uint64_t distance = 1; distance <= lower_ / 16 && found + distance <= upper_; distance *= 4) {
      absl::StatusOr<bool> answer = Runs(found + distance);
      if (!answer.ok()) return answer.status();
    }
    for (auto probed = answers_.rbegin(); probed != answers_.rend() && probed->first > found; ++probed) {
      if (!probed->second) return probed->first;
    }
    return std::nullopt;
  }

  const uint64_t lower_, upper_;
  const FitProbe& probe_;
  std::map<uint64_t, bool> answers_;
};

}  // namespace

absl::StatusOr<std::optional<Bytes>> SmallestCapacity(Bytes lower, Bytes upper, const FitProbe& probe) {
  const uint64_t first = std::max<uint64_t>(1, RoundUp(lower, kFitResolution) / kFitResolution);
  const uint64_t last = upper / kFitResolution;
  if (first > last) return std::nullopt;
  absl::StatusOr<std::optional<uint64_t>> found = Search(first, last, probe).Run();
  if (!found.ok()) return found.status();
  if (!found->has_value()) return std::nullopt;
  return kFitResolution * **found;
}

}  // namespace expanse::bench

// The search for the smallest capacity on which a trace runs.

#ifndef EXPANSE_BENCH_REPLAY_FIT_H_
#define EXPANSE_BENCH_REPLAY_FIT_H_

#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "vmm/units.h"

namespace expanse::bench {

// What capacities are resolved to.
inline constexpr Bytes kFitResolution = MiB(2);

// Whether the trace runs on a device of this capacity.
using FitProbe = std::function<absl::StatusOr<bool>(Bytes capacity)>;

// The smallest multiple of kFitResolution from `lower` to `upper` that was found to run and from which every larger
// probed one runs too; nullopt where none was found.
//
// Running is not monotone in capacity: an allocator may by luck fit where it fails with more memory. So the search
// goes up from `lower` in doubling steps to the first capacity that runs, bisects down to the failure below it, and
// then probes above the answer at widening distances up to a sixteenth of `lower`; a failure there starts the search
// again from that failure, so the answer errs upward and never reports luck that a few more bytes would undo. Probes
// O(log(upper / kFitResolution)) times for each restart; each capacity at most once.
[[nodiscard]] absl::StatusOr<std::optional<Bytes>> SmallestCapacity(Bytes lower, Bytes upper, const FitProbe& probe);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_FIT_H_

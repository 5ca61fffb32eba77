// What an allocator costs the host.

#ifndef EXPANSE_BENCH_REPLAY_HOST_TIME_H_
#define EXPANSE_BENCH_REPLAY_HOST_TIME_H_

#include <optional>

#include "absl/status/statusor.h"
#include "bench/replay/replay.h"
#include "bench/replay/replayer.h"
#include "bench/trace/trace.h"

namespace expanse::bench {

// Measured nanoseconds of the calling thread per allocate/free pair (two calls of Allocate or Free; RecordUse is part
// of the pairs that need it), below the driver table excluded; nullopt where a request failed.
//
// A clock around each call would cost as much as a good allocator does, so stretches of 1,024 calls are timed, with
// nothing in the loop but the calls: no figures, no timeline. One pass of the trace warms the allocator up; its live
// blocks are freed, and three more passes follow, freed likewise. Of each stretch the fastest of the three counts,
// which keeps other processes out. Subtracted are the time inside the driver or simulator, as its own clock measured it
// meanwhile, and the time of the same loop over an allocator that does nothing. Work and wait rows are done with the
// clock stopped.
//
// The trace is replayed four times on a device of its own; options.repeat, lag, touch and keep_going are not looked at.
[[nodiscard]] absl::StatusOr<std::optional<double>> MeasureHostNanosecondsPerPair(const Trace& trace,
                                                                                  const ReplayOptions& options,
                                                                                  const AllocatorFactory& factory);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_HOST_TIME_H_

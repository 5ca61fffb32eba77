// PyTorch memory snapshots, as torch.cuda.memory._dump_snapshot and its C++ twin write them.

#ifndef EXPANSE_BENCH_TRACE_PYTORCH_SNAPSHOT_H_
#define EXPANSE_BENCH_TRACE_PYTORCH_SNAPSHOT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/trace/pickle.h"
#include "bench/trace/trace.h"
#include "vmm/units.h"

namespace expanse::bench {

// The trace of one device of a snapshot: `device`, or the one with the most recorded events (the lowest of several).
// Allocations carry the bytes asked for, blocks live until free_completed, an oom becomes a mark oom_<bytes>, and
// segment events are left out, being the allocator's own doing (see TraceFromHistory for the prologue). Keys and
// actions not known here are ignored; they, other devices and doubtful records are told in `warnings`.
//
// kInvalidArgument names the place in the structure, as in device_traces[0][17].size, the value found and the one
// expected; kNotFound a device that the snapshot does not have. Reads no more entries than `pickle_size` bytes can
// hold, so that a file whose lists share one another costs no more than an honest one. O(pickle_size).
[[nodiscard]] absl::StatusOr<Trace> TraceFromPyTorchSnapshot(PickleValue root, size_t pickle_size,
                                                             std::optional<DeviceOrdinal> device,
                                                             absl::string_view name,
                                                             std::vector<std::string>& warnings);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_PYTORCH_SNAPSHOT_H_

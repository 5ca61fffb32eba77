// Runs a trace against an allocator and reports what happened.

#ifndef EXPANSE_BENCH_REPLAY_REPLAY_H_
#define EXPANSE_BENCH_REPLAY_REPLAY_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/trace/trace.h"
#include "vmm/driver.h"
#include "vmm/sim/cost_model.h"
#include "vmm/units.h"

namespace expanse::bench {

struct ReplayOptions {
  std::string allocator = "expanse";
  // None: the simulated driver. Else the ordinal of a real device.
  std::optional<DeviceOrdinal> cuda_device;
  Bytes capacity = GiB(80);  // memory of the simulated device; a real one has what it has
  std::optional<Bytes> limit;
  std::optional<Bytes> chunk_size;
  Growth growth = Growth::kBalanced;
  std::optional<Bytes> prealloc;
  std::optional<Bytes> prewarm;
  uint64_t lag = 0;         // simulator: a block's last work completes this many events after its free
  uint64_t repeat = 1;      // the whole trace again; blocks live at the end are freed between runs
  bool keep_going = false;  // a request that fails is skipped, and with it every later row of its block
  bool retry_oom = false;   // asks for the bytes of each oom_<bytes> mark and frees them at once
  bool touch = false;       // writes and checks contents; on the simulator this needs real memory
  // Replays again, for host_ns_per_pair: see host_time.h for how. Not with `lag` or `touch`, whose own cost would drown
  // it.
  bool measure_host_time = false;
  bool check_invariants = false;  // after every event; for tests
  uint64_t seed = 0;              // of what `touch` writes
  sim::CostModel costs = sim::CostModel::Default();
  bool record_timeline = false;
  bool record = false;  // expanse: what its own recorder kept becomes `recording` of the result
  // Called now and then with the events done and the events in all.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// One sample of a replay's time line, taken after an event at which a figure changed enough to be seen.
struct TimelinePoint {
  uint64_t event = 0;  // 0-based among allocations and frees
  Bytes live, allocated, pending, reserved;
};

struct MarkFigures {
  std::string label;
  uint64_t event = 0;         // the first event after the mark, 0-based among allocations and frees
  uint64_t driver_calls = 0;  // from this mark to the next, or the end
  std::optional<double> modelled_driver_us;
};

// The contract of the JSON output; design.md section 3 names the keys. Absent figures are nullopt, never 0.
struct ReplayResult {
  std::string allocator;
  std::string device_name;
  Bytes capacity;
  uint64_t events = 0;  // allocations and frees of the trace, times `repeat`, whether or not the replay got that far
  Bytes peak_live, peak_allocated, peak_pending, peak_reserved;
  bool out_of_memory = false;
  std::optional<uint64_t> failed_at_event;    // the first request that failed
  std::optional<Bytes> failed_request;        // its size
  std::optional<std::string> failed_in_mark;  // the mark before it, as "step3"
  std::optional<Bytes> unused_at_failure;     // reserved but not live at that moment
  std::string failure_message;                // of that request, or why a hazard ended the replay; else empty
  uint64_t failed_allocations = 0;
  // The allocator's calls, without those that the replay made itself to queue work, to wait and to touch.
  std::array<uint64_t, kEntryPointCount> driver_calls{};
  std::vector<MarkFigures> marks;
  std::optional<double> modelled_driver_us;  // simulator
  std::optional<double> measured_driver_us;  // device
  // What the allocator's calls waited for queued work. Absent with `lag`, whose clock counts events, not time.
  std::optional<double> stall_us;
  std::optional<double> host_ns_per_pair;  // measured; absent where a request failed
  std::optional<uint64_t> chunks_created;
  std::optional<uint64_t> chunks_moved;
  std::optional<Bytes> address_space_peak;
  std::optional<uint64_t> hazards;               // simulator; the first one ends the replay
  std::vector<std::string> hazard_descriptions;  // the first few
  std::optional<Bytes> smallest_capacity;        // fit
  Bytes live_at_smallest;                        // peak live there
  std::vector<TimelinePoint> timeline;
  std::optional<std::string> recording;  // a trace in the base format
};

// Replays `trace`. An out-of-memory failure is part of the result; an error status means that the replay itself could
// not be done (bad options, a corrupted block, a broken invariant, a driver failure), and says at which event.
// On the simulator this creates one, so no other simulator may be alive.
[[nodiscard]] absl::StatusOr<ReplayResult> Replay(const Trace& trace, const ReplayOptions& options);

// The smallest capacity, in steps of 2 MiB from peak live up, on which the trace runs and from which every larger
// probed one runs too; `smallest_capacity` of the result is set, and the rest is the replay at that capacity.
// NOT_FOUND where no capacity up to `options.capacity` runs it. fit.h has the search.
[[nodiscard]] absl::StatusOr<ReplayResult> Fit(const Trace& trace, const ReplayOptions& options);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_REPLAY_H_

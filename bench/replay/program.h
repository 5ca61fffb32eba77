// The queued work of the program whose trace is replayed.

#ifndef EXPANSE_BENCH_REPLAY_PROGRAM_H_
#define EXPANSE_BENCH_REPLAY_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "bench/replay/replay.h"
#include "bench/replay/replay_device.h"
#include "bench/replay/simulated_replay_device.h"
#include "bench/trace/trace.h"
#include "vmm/units.h"

namespace expanse::bench {

// Queues work on the simulated device as a correct program would: whenever a block is used on another stream than the
// last time, the new stream first waits for the old one by event, so that its uses of one block never race. A race or
// an unmap under work that the simulator then reports is the allocator's fault.
//
// Of the trace, only `k` rows queue work. With lag, in addition: a short write when a block is allocated or used on
// another stream; and before it is freed, work on the freeing stream, then on each other stream that used it, which
// completes `lag` events after the free. The order matters: were the freeing stream last, its order alone would cover
// the others, and an allocator that forgets them would go unnoticed.
class Program {
 public:
  Program(SimulatedReplayDevice& device, uint32_t blocks, uint64_t lag) : device_(device), lag_(lag), last_(blocks) {}

  [[nodiscard]] absl::Status Allocated(uint32_t block, AddressRange range, StreamHandle stream);
  [[nodiscard]] absl::Status Used(uint32_t block, AddressRange range, StreamHandle stream);
  [[nodiscard]] absl::Status Worked(uint32_t block, AddressRange range, StreamHandle stream, uint64_t microseconds);
  [[nodiscard]] absl::Status BeforeFree(uint32_t block, AddressRange range, StreamHandle stream);
  // After each allocation and free, once the allocator is done with it.
  void EventDone() {
    if (lag_ > 0) device_.Tick();
  }

 private:
  // The next work on the block is on `stream`.
  absl::Status MoveTo(uint32_t block, StreamHandle stream);

  SimulatedReplayDevice& device_;
  const uint64_t lag_;
  std::vector<StreamHandle> last_;  // by block: the stream of its last use
  // Live blocks that were used on other streams than they were allocated for, and those streams.
  absl::flat_hash_map<uint32_t, absl::InlinedVector<StreamHandle, 2>> users_;
};

// None where no work is queued: no lag and no row of work, or a real device, on which the replay queues none.
[[nodiscard]] std::optional<Program> ProgramFor(const Trace& trace, const ReplayOptions& options, ReplayDevice& device);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_PROGRAM_H_

// The replay itself, of one trace on one device by one allocator.

#ifndef EXPANSE_BENCH_REPLAY_REPLAYER_H_
#define EXPANSE_BENCH_REPLAY_REPLAYER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/replay/program.h"
#include "bench/replay/replay.h"
#include "bench/replay/replay_device.h"
#include "bench/replay/timeline.h"
#include "bench/trace/trace.h"

namespace expanse::bench {

using AllocatorFactory =
    std::function<absl::StatusOr<std::unique_ptr<BenchAllocator>>(const Driver& driver, const BenchAllocatorOptions&)>;

// Replay and Fit of replay.h with an allocator of the caller's own; `options.allocator` is only its name.
[[nodiscard]] absl::StatusOr<ReplayResult> ReplayWith(const Trace& trace, const ReplayOptions& options,
                                                      const AllocatorFactory& factory);
[[nodiscard]] absl::StatusOr<ReplayResult> FitWith(const Trace& trace, const ReplayOptions& options,
                                                   const AllocatorFactory& factory);

// What the allocator is to be told, on a device with this much memory.
[[nodiscard]] BenchAllocatorOptions AllocatorOptionsFor(const Trace& trace, const ReplayOptions& options,
                                                        const ReplayDevice& device);

// Walks the events and keeps the books of blocks. `program` may be null: then no work is queued. Used once, by one
// thread.
class Replayer {
 public:
  Replayer(const Trace& trace, const ReplayOptions& options, ReplayDevice& device, Program* program,
           BenchAllocator& allocator);

  // What replay.h says of Replay. The allocator still holds its memory afterwards, and live blocks.
  [[nodiscard]] absl::StatusOr<ReplayResult> Run();

 private:
  struct Block {
    DeviceAddress address;  // null: not live, or its request failed
    Bytes size;
    int32_t stream = 0;
    [[nodiscard]] AddressRange range() const { return {address, size}; }
  };

  absl::Status RunOnce();
  absl::Status Step(const TraceEvent& event);
  absl::Status Allocate(const TraceEvent& event);
  absl::Status Free(const TraceEvent& event);
  absl::Status FreeBlock(uint32_t index, StreamHandle stream);
  absl::Status Mark(const std::string& label);
  // Asks for what a mark oom_<bytes> says, and frees it.
  absl::Status RetryOutOfMemory(Bytes size);
  absl::Status FreeLiveBlocks();
  absl::Status CheckLiveContents();

  // A request was refused with `why`: notes it, and stops unless it is to go on. Any other error is returned.
  absl::Status RequestFailed(Bytes size, const absl::Status& why);
  // After an allocation or a free.
  absl::Status EventDone();
  void CloseMark();
  // Whether `status` is the consequence of a hazard, which then ends the replay as part of the result.
  bool EndedByHazard(const absl::Status& status);
  // Adds to an error where the replay was.
  absl::Status Located(const absl::Status& status, const TraceEvent& event) const;
  void FillIn(ReplayResult* result) const;

  [[nodiscard]] uint64_t ContentsKey(uint32_t block) const;

  const Trace& trace_;
  const ReplayOptions& options_;
  ReplayDevice& device_;
  Program* const program_;
  BenchAllocator& allocator_;

  std::vector<Block> blocks_;
  uint64_t event_ = 0;  // allocations and frees done
  uint64_t total_events_ = 0;
  Bytes live_, peak_live_;
  bool stopped_ = false;
  uint64_t calls_at_mark_ = 0;
  std::optional<double> modelled_us_at_mark_;
  TimelineSampler timeline_;
  ReplayResult result_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_REPLAYER_H_

// One interface over every allocator that the tool replays: Expanse itself and its rivals.

#ifndef EXPANSE_BENCH_ALLOCATORS_BENCH_ALLOCATOR_H_
#define EXPANSE_BENCH_ALLOCATORS_BENCH_ALLOCATOR_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/options.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse::bench {

// Figures at one moment; docs/design.md defines the words.
struct AllocatorFigures {
  Bytes live;       // bytes asked for and not freed
  Bytes allocated;  // live as the allocator rounds it
  Bytes pending;    // freed, but a stream may still use it
  Bytes reserved;   // physical memory held
  Bytes peak_live, peak_allocated, peak_pending, peak_reserved;
  std::optional<Bytes> peak_address_space;  // absent where addresses come with the memory
  std::optional<uint64_t> chunks_created;   // absent for allocators without chunks
  std::optional<uint64_t> chunks_moved;
};

class BenchAllocator {
 public:
  virtual ~BenchAllocator() = default;  // gives everything back to the driver, live blocks included

  // RESOURCE_EXHAUSTED when the request does not fit; then nothing is lost and later requests may be served.
  [[nodiscard]] virtual absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream) = 0;
  // The block was last used by work queued on `stream`.
  [[nodiscard]] virtual absl::Status Free(DeviceAddress address, StreamHandle stream) = 0;
  // Work on `stream`, another stream than the block's own, uses it.
  [[nodiscard]] virtual absl::Status RecordUse(DeviceAddress address, StreamHandle stream) = 0;
  // A named moment of the program; told if it is recorded.
  [[nodiscard]] virtual absl::Status Mark(std::string_view label);
  // What was asked for since creation, as a trace in the base format. UNIMPLEMENTED for allocators that record nothing;
  // FAILED_PRECONDITION where `record_events` was 0.
  [[nodiscard]] virtual absl::StatusOr<std::string> Recording() const;
  [[nodiscard]] virtual AllocatorFigures figures() const = 0;
  // OK, or what is inconsistent. O(everything).
  [[nodiscard]] virtual absl::Status CheckInvariants() const = 0;
};

struct BenchAllocatorOptions {
  DeviceOrdinal device;
  std::optional<Bytes> limit;         // most physical memory it may hold
  std::optional<Bytes> chunk_size;    // expanse
  Growth growth = Growth::kBalanced;  // expanse
  std::optional<Bytes> prewarm;       // expanse: created before the first request
  uint64_t record_events = 0;         // expanse: how many of the latest events it records
  // preallocated: size of the first block; none: 0.9 of the device's memory, and no block where that is below 10 MiB
  std::optional<Bytes> prealloc;
};

// "expanse", "naive", "caching", "preallocated", "per-stream-segments": the order in which the tool lists them.
[[nodiscard]] std::vector<std::string_view> BenchAllocatorNames();

// NOT_FOUND for an unknown name, listing the known ones; UNIMPLEMENTED for driver-pool, whose entry points the
// simulated driver lacks; else what creating it returned. The driver is initialised by the caller. Retains the primary
// context of the device and makes it current on the calling thread where driver calls need that.
[[nodiscard]] absl::StatusOr<std::unique_ptr<BenchAllocator>> CreateBenchAllocator(
    std::string_view name, const Driver& driver, const BenchAllocatorOptions& options);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_BENCH_ALLOCATOR_H_

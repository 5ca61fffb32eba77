// `naive`: one driver allocation per block.

#ifndef EXPANSE_BENCH_ALLOCATORS_NAIVE_ALLOCATOR_H_
#define EXPANSE_BENCH_ALLOCATORS_NAIVE_ALLOCATOR_H_

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/allocators/device_context.h"
#include "bench/allocators/figure_book.h"
#include "vmm/mutex.h"
#include "vmm/units.h"

namespace expanse::bench {

// cuMemAlloc and cuMemFree. cuMemFree returns once the work that may use the memory is complete, so neither the stream
// of a free nor uses on other streams need any care; that wait is what this policy costs.
//
// Source: the description of cudaFree as synchronising in the CUDA C++ Programming Guide (implicit synchronisation),
// and PyTorch's PYTORCH_NO_CUDA_MEMORY_CACHING=1, which does the same.
//
// Invariants: `live_` holds every block that the driver gave and did not take back, or is being asked to take back;
// the figures are the sums over it, each block rounded up to 512 bytes, which is what the driver packs blocks to. One
// lock guards the books; it is not held during driver calls.
class NaiveAllocator final : public BenchAllocator {
 public:
  NaiveAllocator(std::unique_ptr<DeviceContext> context, std::optional<Bytes> limit);
  ~NaiveAllocator() override;

  [[nodiscard]] absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream) override
      ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] absl::Status Free(DeviceAddress address, StreamHandle stream) override ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] absl::Status RecordUse(DeviceAddress address, StreamHandle stream) override ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] AllocatorFigures figures() const override ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] absl::Status CheckInvariants() const override
      ABSL_LOCKS_EXCLUDED(mu_);  // between calls of other threads

 private:
  const std::unique_ptr<DeviceContext> context_;
  const std::optional<Bytes> limit_;
  mutable Mutex mu_;
  absl::flat_hash_map<DeviceAddress, Bytes> live_ ABSL_GUARDED_BY(mu_);  // as requested
  Bytes asked_for_ ABSL_GUARDED_BY(mu_);                                 // of the driver, which has not answered yet
  FigureBook figures_ ABSL_GUARDED_BY(mu_);
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_NAIVE_ALLOCATOR_H_

// `expanse`: this library behind the interface of the rivals.

#ifndef EXPANSE_BENCH_ALLOCATORS_EXPANSE_ADAPTER_H_
#define EXPANSE_BENCH_ALLOCATORS_EXPANSE_ADAPTER_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/allocators/device_context.h"
#include "core/allocator.h"
#include "vmm/units.h"

namespace expanse::bench {

// Passes everything on to expanse::Allocator, which is as thread-safe and blocks as it says.
class ExpanseAdapter final : public BenchAllocator {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<BenchAllocator>> Create(std::unique_ptr<DeviceContext> context,
                                                                              const BenchAllocatorOptions& options);

  // What no device could hold is INVALID_ARGUMENT to the library and out of memory to a replay.
  [[nodiscard]] absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream) override;
  [[nodiscard]] absl::Status Free(DeviceAddress address, StreamHandle stream) override;
  [[nodiscard]] absl::Status RecordUse(DeviceAddress address, StreamHandle stream) override;
  [[nodiscard]] absl::Status Mark(std::string_view label) override;
  [[nodiscard]] absl::StatusOr<std::string> Recording() const override { return allocator_->GetRecording(); }
  [[nodiscard]] AllocatorFigures figures() const override;
  [[nodiscard]] absl::Status CheckInvariants() const override;

 private:
  ExpanseAdapter(std::unique_ptr<DeviceContext> context, std::unique_ptr<Allocator> allocator, bool records);

  const std::unique_ptr<DeviceContext> context_;
  const std::unique_ptr<Allocator> allocator_;
  const bool records_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_EXPANSE_ADAPTER_H_

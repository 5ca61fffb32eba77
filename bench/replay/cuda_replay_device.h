// A replay on a real device.

#ifndef EXPANSE_BENCH_REPLAY_CUDA_REPLAY_DEVICE_H_
#define EXPANSE_BENCH_REPLAY_CUDA_REPLAY_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/replay/replay_device.h"
#include "vmm/counting_driver.h"

namespace expanse::bench {

// The allocator's calls go through a counting table, the replay's own straight to the driver.
class CudaReplayDevice final : public ReplayDevice {
 public:
  // UNAVAILABLE where there is no driver or no such device.
  static absl::StatusOr<std::unique_ptr<CudaReplayDevice>> Open(const Trace& trace, const ReplayOptions& options);
  ~CudaReplayDevice() override { CloseContext(own_driver_); }

  const Driver& driver() const override { return counting_.driver(); }
  DriverUse use() const override;
  void ResetUse() override { counting_.Reset(); }
  absl::Status Wait(StreamHandle stream) override;

  // Copies on the legacy stream, waited for.
  absl::Status Write(DeviceAddress address, absl::Span<const uint8_t> bytes) override;
  absl::Status Read(DeviceAddress address, absl::Span<uint8_t> bytes) override;

 private:
  CudaReplayDevice(DeviceOrdinal ordinal, const Driver& driver)
      : ReplayDevice(ordinal), own_driver_(driver), counting_(driver) {}

  const Driver own_driver_;
  CountingDriver counting_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_CUDA_REPLAY_DEVICE_H_

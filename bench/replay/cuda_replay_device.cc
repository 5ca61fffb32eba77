#include "bench/replay/cuda_replay_device.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace expanse::bench {

absl::StatusOr<std::unique_ptr<CudaReplayDevice>> CudaReplayDevice::Open(const Trace& trace,
                                                                         const ReplayOptions& options) {
  absl::StatusOr<Driver> driver = LoadCudaDriver();
  if (!driver.ok()) return driver.status();
  int devices = 0;
  const abi::Result result = driver->device_get_count(&devices);
  if (absl::Status status = ToStatus(*driver, result, "cuDeviceGetCount"); !status.ok()) return status;
  if (options.cuda_device->value() >= devices) {
    return absl::UnavailableError(
        absl::StrCat("no device cuda:", options.cuda_device->value(), "; the driver has ", devices));
  }
  std::unique_ptr<CudaReplayDevice> device(new CudaReplayDevice(*options.cuda_device, *driver));
  if (absl::Status status = device->OpenContext(device->own_driver_, trace); !status.ok()) return status;
  return device;
}

DriverUse CudaReplayDevice::use() const {
  const DriverCallCounts counts = counting_.counts();
  DriverUse use;
  use.calls = counts.calls;
  use.host_inside = counts.TotalMeasured();
  use.measured_us = std::chrono::duration<double, std::micro>(use.host_inside).count();
  return use;
}

absl::Status CudaReplayDevice::Wait(StreamHandle stream) {
  return ToStatus(own_driver_, own_driver_.stream_synchronize(static_cast<abi::Stream>(stream.raw())),
                  "cuStreamSynchronize");
}

absl::Status CudaReplayDevice::Write(DeviceAddress address, absl::Span<const uint8_t> bytes) {
  const abi::Result result = own_driver_.memcpy_htod_async(address.value(), bytes.data(), bytes.size(), nullptr);
  if (absl::Status status = ToStatus(own_driver_, result, "cuMemcpyHtoDAsync"); !status.ok()) return status;
  return Wait(StreamHandle());
}

absl::Status CudaReplayDevice::Read(DeviceAddress address, absl::Span<uint8_t> bytes) {
  const abi::Result result = own_driver_.memcpy_dtoh_async(bytes.data(), address.value(), bytes.size(), nullptr);
  if (absl::Status status = ToStatus(own_driver_, result, "cuMemcpyDtoHAsync"); !status.ok()) return status;
  return Wait(StreamHandle());
}

}  // namespace expanse::bench

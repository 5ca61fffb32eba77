#include "bench/allocators/device_context.h"

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/memory/memory.h"
#include "vmm/driver_call.h"

namespace expanse::bench {
namespace {

std::atomic<uint64_t> next_id{1};
thread_local uint64_t current_id = 0;  // the id of the DeviceContext that this thread made current last

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceContext>> DeviceContext::Create(const Driver& driver, DeviceOrdinal ordinal) {
  abi::Device device = 0;
  absl::Status status = CallStatus(driver, driver.device_get(&device, ordinal.value()), EntryPoint::device_get,
                                   "ordinal=", ordinal.value());
  if (!status.ok()) return status;
  size_t total = 0;
  status = CallStatus(driver, driver.device_total_mem(&total, device), EntryPoint::device_total_mem, "device=", device);
  if (!status.ok()) return status;
  abi::Context context = nullptr;
  status = CallStatus(driver, driver.primary_ctx_retain(&context, device), EntryPoint::primary_ctx_retain,
                      "device=", device);
  if (!status.ok()) return status;
  auto result = absl::WrapUnique(new DeviceContext(driver, device, context, Bytes(total)));
  status = result->MakeCurrent();
  if (!status.ok()) return status;
  return result;
}

DeviceContext::DeviceContext(const Driver& driver, abi::Device device, abi::Context context, Bytes total_memory)
    : driver_(driver), device_(device), context_(context), total_memory_(total_memory), id_(next_id++) {}

DeviceContext::~DeviceContext() {
  if (current_id == id_) current_id = 0;
  // There is nobody to tell that the driver refuses.
  (void)driver_.primary_ctx_release(device_);
}

absl::Status DeviceContext::MakeCurrent() {
  if (current_id == id_) return absl::OkStatus();
  absl::Status status = CallStatus(driver_, driver_.ctx_set_current(context_), EntryPoint::ctx_set_current,
                                   "the primary context of device ", device_);
  if (status.ok()) current_id = id_;
  return status;
}

}  // namespace expanse::bench

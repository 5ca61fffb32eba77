#include "vmm/device.h"

#include <algorithm>
#include <memory>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "vmm/driver_call.h"
#include "vmm/reservation.h"
#include "vmm/scoped_context.h"

namespace expanse {
namespace {

// The value of an attribute, or 0 where the driver does not know it: one that is newer than the driver is an invalid
// value to it.
absl::StatusOr<int> Attribute(const Driver& driver, abi::Device device, abi::DeviceAttribute attribute) {
  int value = 0;
  const abi::Result result = driver.device_get_attribute(&value, attribute, device);
  if (result == abi::kSuccess) return value;
  if (result == abi::kInvalidValue) return 0;
  return CallStatus(driver, result, EntryPoint::device_get_attribute, "attribute=", attribute, ", device=", device);
}

absl::StatusOr<Bytes> Granularity(const Driver& driver, DeviceOrdinal ordinal) {
  const abi::AllocationProp prop = AllocationProperties(ordinal, ChunkKind());
  Bytes granularity;
  for (const abi::Granularity which : {abi::kGranularityMinimum, abi::kGranularityRecommended}) {
    size_t size = 0;
    absl::Status status =
        CallStatus(driver, driver.mem_get_allocation_granularity(&size, &prop, which),
                   EntryPoint::mem_get_allocation_granularity, "device=", ordinal.value(), ", option=", which);
    if (!status.ok()) return status;
    granularity = std::max(granularity, Bytes(size));
  }
  const uint64_t count = granularity.count();
  if (count == 0 || (count & (count - 1)) != 0) {
    return absl::InternalError(absl::StrCat("cuMemGetAllocationGranularity(device=", ordinal.value(), ") gave ", count,
                                            ", expected a power of two"));
  }
  return granularity;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> Device::Open(const Driver& driver, DeviceOrdinal ordinal) {
  auto device = absl::WrapUnique(new Device(driver, ordinal));
  absl::Status status = device->Initialise();
  if (!status.ok()) return status;
  return device;
}

Device::~Device() {
  if (context_ != nullptr) (void)Insist([&] { return driver().primary_ctx_release(device_); });
}

absl::Status Device::Initialise() {
  absl::Status status = CallStatus(driver(), driver().init(0), EntryPoint::init, "flags=0");
  if (!status.ok()) return status;
  status = CallStatus(driver(), driver().device_get(&device_, ordinal_.value()), EntryPoint::device_get,
                      "ordinal=", ordinal_.value());
  if (!status.ok()) return status;

  absl::StatusOr<int> has_vmm = Attribute(driver(), device_, abi::kAttributeVirtualMemoryManagement);
  if (!has_vmm.ok()) return has_vmm.status();
  if (*has_vmm == 0) {
    return absl::UnimplementedError(absl::StrCat("device ", ordinal_.value(), " has no virtual memory management"));
  }

  // Creating a context while some stream captures, which is not ours to know, must not spoil the capture.
  ScopedRelaxedCapture relaxed(driver());
  abi::Context context = nullptr;
  status = CallStatus(driver(), driver().primary_ctx_retain(&context, device_), EntryPoint::primary_ctx_retain,
                      "device=", device_);
  if (!status.ok()) return status;
  context_ = context;  // from here on the destructor releases it

  status = ReadProperties();
  if (!status.ok()) return status;
  return ProbeVirtualMemory();
}

absl::Status Device::ReadProperties() {
  size_t total = 0;
  absl::Status status = CallStatus(driver(), driver().device_total_mem(&total, device_), EntryPoint::device_total_mem,
                                   "device=", device_);
  if (!status.ok()) return status;
  total_memory_ = Bytes(total);

  absl::StatusOr<Bytes> granularity = Granularity(driver(), ordinal_);
  if (!granularity.ok()) return granularity.status();
  granularity_ = *granularity;

  const struct {
    abi::DeviceAttribute attribute;
    bool& capability;
  } questions[] = {
      {abi::kAttributeHandlePosixFd, capabilities_.posix_fd_handles},
      {abi::kAttributeHandleFabric, capabilities_.fabric_handles},
      {abi::kAttributeGenericCompression, capabilities_.generic_compression},
      {abi::kAttributeRdmaWithVmm, capabilities_.rdma},
      {abi::kAttributeMemoryPools, capabilities_.memory_pools},
      {abi::kAttributeMulticast, capabilities_.multicast},
      {abi::kAttributeIntegrated, capabilities_.integrated},
  };
  for (const auto& question : questions) {
    absl::StatusOr<int> answer = Attribute(driver(), device_, question.attribute);
    if (!answer.ok()) return answer.status();
    question.capability = *answer != 0;
  }
  return absl::OkStatus();
}

// The attribute alone is not enough: on some integrated devices creation fails all the same. A device that is full just
// now, with what another allocator of the process may give back, is no such device.
absl::Status Device::ProbeVirtualMemory() const {
  absl::StatusOr<Reservation> reservation = Reservation::Reserve(driver(), granularity_, granularity_);
  if (!reservation.ok()) return reservation.status();
  absl::StatusOr<Chunk> chunk = Chunk::Create(driver(), ordinal_, granularity_, ChunkKind());
  if (absl::IsResourceExhausted(chunk.status()) && IsFull()) return reservation->Free();
  if (!chunk.ok()) return chunk.status();

  const abi::DevicePtr address = reservation->range().begin.value();
  const size_t size = granularity_.count();
  absl::Status status =
      CallStatus(driver(), driver().mem_map(address, size, 0, chunk->handle(), 0), EntryPoint::mem_map, "address=0x",
                 absl::Hex(address), ", size=", size, ", device=", ordinal_.value());
  if (!status.ok()) return status;
  const abi::AccessDesc access{{abi::kLocationDevice, ordinal_.value()}, abi::kAccessReadWrite};
  status = CallStatus(driver(), driver().mem_set_access(address, size, &access, 1), EntryPoint::mem_set_access,
                      "address=0x", absl::Hex(address), ", size=", size, ", device=", ordinal_.value());
  absl::Status unmapped = CallStatus(driver(), driver().mem_unmap(address, size), EntryPoint::mem_unmap, "address=0x",
                                     absl::Hex(address), ", size=", size);
  // A device that refuses to undo is not opened, but is asked once more all the same: nobody can undo it later.
  if (!unmapped.ok() && driver().mem_unmap(address, size) != abi::kSuccess) reservation->Abandon();
  status.Update(unmapped);
  status.Update(chunk->Release());
  status.Update(reservation->Free());
  return status;
}

bool Device::IsFull() const {
  const absl::StatusOr<MemoryInfo> info = GetMemoryInfo();
  return info.ok() && info->free < granularity_;
}

absl::StatusOr<MemoryInfo> Device::GetMemoryInfo() const {
  absl::StatusOr<ScopedContext> context = ScopedContext::Enter(*this);
  if (!context.ok()) return context.status();
  size_t free = 0;
  size_t total = 0;
  absl::Status status =
      CallStatus(driver(), driver().mem_get_info(&free, &total), EntryPoint::mem_get_info, "device=", ordinal_.value());
  status.Update(context->Leave());
  if (!status.ok()) return status;
  return MemoryInfo{Bytes(free), Bytes(total)};
}

absl::Status Device::ProbeKind(const ChunkKind& kind) const {
  absl::StatusOr<Chunk> chunk = Chunk::Create(driver(), ordinal_, granularity_, kind);
  return chunk.ok() ? chunk->Release() : chunk.status();
}

}  // namespace expanse

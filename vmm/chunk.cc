#include "vmm/chunk.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "vmm/driver_call.h"

namespace expanse {

std::string ToString(const ChunkKind& kind) {
  std::vector<const char*> properties;
  if (kind.posix_fd) properties.push_back("posix_fd");
  if (kind.fabric) properties.push_back("fabric");
  if (kind.rdma) properties.push_back("rdma");
  if (kind.compression) properties.push_back("compression");
  return properties.empty() ? "plain" : absl::StrJoin(properties, "+");
}

abi::AllocationProp AllocationProperties(DeviceOrdinal device, const ChunkKind& kind) {
  abi::AllocationProp prop{};
  prop.type = abi::kAllocationPinned;
  prop.requested_handle_types =
      (kind.posix_fd ? abi::kHandlePosixFd : 0) | (kind.fabric ? static_cast<int>(abi::kHandleFabric) : 0);
  prop.location = {abi::kLocationDevice, device.value()};
  prop.alloc_flags.compression_type = kind.compression ? 1 : 0;  // CU_MEM_ALLOCATION_COMP_GENERIC
  prop.alloc_flags.gpu_direct_rdma_capable = kind.rdma ? 1 : 0;
  return prop;
}

absl::StatusOr<Chunk> Chunk::Create(const Driver& driver, DeviceOrdinal device, Bytes size, const ChunkKind& kind) {
  const abi::AllocationProp prop = AllocationProperties(device, kind);
  abi::MemHandle handle = 0;
  const abi::Result result = driver.mem_create(&handle, size.count(), &prop, 0);
  if (result != abi::kSuccess) {
    return CallStatus(driver, result, EntryPoint::mem_create, "size=", size.count(), ", device=", device.value(),
                      ", kind=", ToString(kind));
  }
  return Chunk(driver, handle, size);
}

Chunk::~Chunk() {
  if (!empty()) (void)Insist([&] { return driver_->mem_release(handle_); });
}

Chunk::Chunk(Chunk&& other) noexcept
    : driver_(other.driver_), handle_(std::exchange(other.handle_, 0)), size_(std::exchange(other.size_, Bytes())) {}

Chunk& Chunk::operator=(Chunk&& other) noexcept {
  // The old handle, if any, goes with `old`.
  Chunk old(std::move(other));
  std::swap(driver_, old.driver_);
  std::swap(handle_, old.handle_);
  std::swap(size_, old.size_);
  return *this;
}

absl::Status Chunk::Release() {
  if (empty()) return absl::OkStatus();
  absl::Status status = CallStatus(*driver_, driver_->mem_release(handle_), EntryPoint::mem_release, "handle=0x",
                                   absl::Hex(handle_), ", size=", size_.count());
  if (!status.ok()) return status;
  handle_ = 0;
  size_ = Bytes();
  return absl::OkStatus();
}

}  // namespace expanse

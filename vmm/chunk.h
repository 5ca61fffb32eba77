// A piece of physical device memory: one driver handle.

#ifndef EXPANSE_VMM_CHUNK_H_
#define EXPANSE_VMM_CHUNK_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse {

// What the driver fixes about physical memory when it is created. Memory of one kind cannot stand in for another.
struct ChunkKind {
  bool posix_fd = false;     // can be exported as a file descriptor
  bool fabric = false;       // can be exported as a fabric handle
  bool rdma = false;         // GPUDirect RDMA
  bool compression = false;  // generic compression

  friend bool operator==(const ChunkKind& a, const ChunkKind& b) {
    return a.posix_fd == b.posix_fd && a.fabric == b.fabric && a.rdma == b.rdma && a.compression == b.compression;
  }
  friend bool operator!=(const ChunkKind& a, const ChunkKind& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H h, const ChunkKind& kind) {
    return H::combine(std::move(h), kind.posix_fd, kind.fabric, kind.rdma, kind.compression);
  }
};

// "plain", or its properties: "posix_fd+rdma".
[[nodiscard]] std::string ToString(const ChunkKind& kind);

// The properties that the driver is asked for, every unused byte zero.
[[nodiscard]] abi::AllocationProp AllocationProperties(DeviceOrdinal device, const ChunkKind& kind);

// Owns one reference to a handle. The memory itself lives on while it is mapped anywhere. Movable; an empty chunk owns
// nothing. Externally synchronised.
class Chunk {
 public:
  Chunk() = default;
  // `size` is a multiple of the device's granularity. The memory is committed at once and its contents are undefined.
  // One driver call. RESOURCE_EXHAUSTED when the device has no more.
  [[nodiscard]] static absl::StatusOr<Chunk> Create(const Driver& driver, DeviceOrdinal device, Bytes size,
                                                    const ChunkKind& kind);
  // Releases the reference, insisting once; ignores what the driver answers then.
  ~Chunk();
  Chunk(Chunk&& other) noexcept;
  Chunk& operator=(Chunk&& other) noexcept;

  // Releases the reference: one driver call. On failure the chunk still owns it. OK if it owns nothing.
  [[nodiscard]] absl::Status Release();

  [[nodiscard]] bool empty() const { return handle_ == 0; }
  [[nodiscard]] abi::MemHandle handle() const { return handle_; }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  Chunk(const Driver& driver, abi::MemHandle handle, Bytes size) : driver_(&driver), handle_(handle), size_(size) {}

  const Driver* driver_ = nullptr;
  abi::MemHandle handle_ = 0;  // the driver never gives 0
  Bytes size_;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_CHUNK_H_

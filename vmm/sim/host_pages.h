// The host pages behind simulated device memory: address ranges of this process, and sparse files whose pages are shown
// in them. Everything that the real-memory mode asks of the operating system is here.
//
// All functions report refusal by their return value and leave what was there unchanged. When the kernel refuses for
// want of mappings (vm.max_map_count), that is said once on stderr, for the caller can only report "out of memory".

#ifndef EXPANSE_VMM_SIM_HOST_PAGES_H_
#define EXPANSE_VMM_SIM_HOST_PAGES_H_

#include <sys/mman.h>

#include <cstdint>
#include <optional>

#include "vmm/units.h"

namespace expanse::sim {

inline constexpr Bytes kHostPage = KiB(4);  // what the driver interface calls the host page size; x86-64's

// Takes an address range that faults on every touch and is absent from forked children. `alignment` is a power of two
// and at least a page. With a hint the range starts exactly there or is not taken.
[[nodiscard]] std::optional<DeviceAddress> ReservePages(Bytes size, Bytes alignment,
                                                        DeviceAddress hint = DeviceAddress());
// Gives a whole reserved range back to the process, whatever is shown in it.
void ReleasePages(AddressRange range);
// Makes a part of a reserved range fault again.
[[nodiscard]] bool HidePages(AddressRange range);
// Changes the protection (PROT_*) of shown pages.
[[nodiscard]] bool ProtectPages(AddressRange range, int protection);

// An unnamed sparse file. Offsets are handed out once and never again: there are 2^60 of them, and pages that were
// given back cost nothing. Not thread-safe.
class SparseFile {
 public:
  // Null if the host refuses a file.
  static std::optional<SparseFile> Create(const char* name);
  SparseFile(SparseFile&& other) noexcept;
  SparseFile& operator=(SparseFile&&) = delete;
  ~SparseFile();

  // A fresh extent, which reads as zero. O(1).
  [[nodiscard]] uint64_t TakeOffset(Bytes size);
  // Frees the pages of an extent.
  void Discard(uint64_t offset, Bytes size);
  // Shows the extent at an address within a reserved range.
  [[nodiscard]] bool ShowPages(AddressRange range, uint64_t offset, int protection) const;

  // Contents, which are reached whatever the protection of the pages that show them. False if the host refuses memory
  // or `data` is not readable or writable.
  [[nodiscard]] bool Write(uint64_t offset, const void* data, Bytes size);
  [[nodiscard]] bool Read(uint64_t offset, void* data, Bytes size) const;
  [[nodiscard]] bool Fill(uint64_t offset, unsigned char value, Bytes size);

 private:
  explicit SparseFile(int fd) : fd_(fd) {}

  int fd_;
  uint64_t next_offset_ = 0;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_HOST_PAGES_H_

#include "vmm/sim/host_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <vector>

namespace expanse::sim {
namespace {

// Older C libraries lack the name; older kernels treat the flag as a plain hint, which the caller checks for.
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

constexpr int kReserveFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void ExplainRefusal() {
  if (errno != ENOMEM) return;
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(stderr,
               "expanse simulator: the kernel refuses another mapping, most likely because this process reached "
               "vm.max_map_count; raise it with sysctl, or use the accounting mode, which maps nothing\n");
}

// Every replacement of pages loses the mark, and neighbours only merge if they carry the same ones.
void HideFromChildren(void* address, size_t size) { (void)madvise(address, size, MADV_DONTFORK); }

}  // namespace

std::optional<DeviceAddress> ReservePages(Bytes size, Bytes alignment, DeviceAddress hint) {
  if (!hint.is_null()) {
    void* at = mmap(hint.ptr(), size.count(), PROT_NONE, kReserveFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) return std::nullopt;
    if (at != hint.ptr()) {
      munmap(at, size.count());
      return std::nullopt;
    }
    HideFromChildren(at, size.count());
    return hint;
  }
  // Anonymous mappings are page-aligned only, so take more and give back what sticks out at both ends.
  const uint64_t slack = alignment > kHostPage ? alignment.count() : 0;
  if (size.count() + slack < size.count()) return std::nullopt;
  void* raw = mmap(nullptr, size.count() + slack, PROT_NONE, kReserveFlags, -1, 0);
  if (raw == MAP_FAILED) return std::nullopt;
  const uint64_t start = reinterpret_cast<uintptr_t>(raw);
  const uint64_t aligned = slack == 0 ? start : (start + slack - 1) / slack * slack;
  if (aligned > start) munmap(raw, aligned - start);
  const uint64_t tail = start + slack - aligned;
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + size.count()), tail);
  HideFromChildren(reinterpret_cast<void*>(aligned), size.count());
  return DeviceAddress(aligned);
}

void ReleasePages(AddressRange range) { munmap(range.begin.ptr(), range.size.count()); }

bool HidePages(AddressRange range) {
  // Replaced in one step, not unmapped first: another thread's mmap could land in the hole.
  void* at = mmap(range.begin.ptr(), range.size.count(), PROT_NONE, kReserveFlags | MAP_FIXED, -1, 0);
  // Past its limit of mappings, which the rest of the process uses too, the kernel makes no new mapping even in the
  // place of an old one. Taking the old one away first makes room, unless that would split it.
  if (at == MAP_FAILED && errno == ENOMEM && munmap(range.begin.ptr(), range.size.count()) == 0) {
    at = mmap(range.begin.ptr(), range.size.count(), PROT_NONE, kReserveFlags | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (at == MAP_FAILED) {
    ExplainRefusal();
    return false;
  }
  HideFromChildren(at, range.size.count());
  return true;
}

bool ProtectPages(AddressRange range, int protection) {
  if (mprotect(range.begin.ptr(), range.size.count(), protection) == 0) return true;
  ExplainRefusal();
  return false;
}

std::optional<SparseFile> SparseFile::Create(const char* name) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) return std::nullopt;
  // Longer than all the offsets that will ever be handed out: pages appear only where they are touched.
  if (ftruncate(fd, off_t{1} << 60) != 0) {
    close(fd);
    return std::nullopt;
  }
  return SparseFile(fd);
}

SparseFile::SparseFile(SparseFile&& other) noexcept : fd_(other.fd_), next_offset_(other.next_offset_) {
  other.fd_ = -1;
}

SparseFile::~SparseFile() {
  if (fd_ >= 0) close(fd_);
}

uint64_t SparseFile::TakeOffset(Bytes size) {
  const uint64_t offset = next_offset_;
  next_offset_ += RoundUp(size, kHostPage).count();
  return offset;
}

void SparseFile::Discard(uint64_t offset, Bytes size) {
  (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(RoundUp(size, kHostPage).count()));
}

bool SparseFile::ShowPages(AddressRange range, uint64_t offset, int protection) const {
  void* at =
      mmap(range.begin.ptr(), range.size.count(), protection, MAP_SHARED | MAP_FIXED, fd_, static_cast<off_t>(offset));
  if (at == MAP_FAILED) {
    ExplainRefusal();
    return false;
  }
  HideFromChildren(at, range.size.count());
  return true;
}

bool SparseFile::Write(uint64_t offset, const void* data, Bytes size) {
  const char* from = static_cast<const char*>(data);
  for (uint64_t done = 0; done < size.count();) {
    const ssize_t n = pwrite(fd_, from + done, size.count() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<uint64_t>(n);
  }
  return true;
}

bool SparseFile::Read(uint64_t offset, void* data, Bytes size) const {
  char* to = static_cast<char*>(data);
  for (uint64_t done = 0; done < size.count();) {
    const ssize_t n = pread(fd_, to + done, size.count() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<uint64_t>(n);
  }
  return true;
}

bool SparseFile::Fill(uint64_t offset, unsigned char value, Bytes size) {
  const std::vector<unsigned char> pattern(std::min<uint64_t>(size.count(), MiB(1).count()), value);
  for (uint64_t done = 0; done < size.count(); done += pattern.size()) {
    if (!Write(offset + done, pattern.data(), Bytes(std::min<uint64_t>(pattern.size(), size.count() - done)))) {
      return false;
    }
  }
  return true;
}

}  // namespace expanse::sim

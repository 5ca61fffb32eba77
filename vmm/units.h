// Strong types for the quantities that this library passes around.
//
// A size in bytes, a number of chunks, an address on a device and the number of a device are all integers to the
// machine, and mixing them up is the commonest fault in allocators. Here each is a type of its own: adding bytes to
// bytes or to an address compiles, adding chunks to bytes does not.
//
// All of them are trivially copyable, 8 bytes or less, and constexpr throughout; every operation is O(1).

#ifndef EXPANSE_VMM_UNITS_H_
#define EXPANSE_VMM_UNITS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace expanse {

// A non-negative quantity that may only be combined with its own kind. `Tag` tells the kinds apart. Subtracting more
// than there is wraps, as for any unsigned integer: callers compare first.
template <typename Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(uint64_t count) : count_(count) {}

  [[nodiscard]] constexpr uint64_t count() const { return count_; }
  [[nodiscard]] constexpr bool is_zero() const { return count_ == 0; }

  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.count_ + b.count_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.count_ - b.count_); }
  friend constexpr Quantity operator*(Quantity a, uint64_t times) { return Quantity(a.count_ * times); }
  friend constexpr Quantity operator*(uint64_t times, Quantity a) { return Quantity(a.count_ * times); }
  friend constexpr uint64_t operator/(Quantity a, Quantity b) { return a.count_ / b.count_; }
  friend constexpr Quantity operator/(Quantity a, uint64_t parts) { return Quantity(a.count_ / parts); }
  friend constexpr Quantity operator%(Quantity a, Quantity b) { return Quantity(a.count_ % b.count_); }

  friend constexpr bool operator==(Quantity a, Quantity b) { return a.count_ == b.count_; }
  friend constexpr bool operator!=(Quantity a, Quantity b) { return a.count_ != b.count_; }
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.count_ < b.count_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.count_ <= b.count_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.count_ > b.count_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.count_ >= b.count_; }

  template <typename H>
  friend H AbslHashValue(H h, Quantity q) {
    return H::combine(std::move(h), q.count_);
  }

 private:
  uint64_t count_ = 0;
};

// A size in bytes.
using Bytes = Quantity<struct BytesTag>;
// A number of chunks: units of physical memory, each one driver handle.
using ChunkCount = Quantity<struct ChunkCountTag>;

constexpr Bytes KiB(uint64_t n) { return Bytes(n << 10); }
constexpr Bytes MiB(uint64_t n) { return Bytes(n << 20); }
constexpr Bytes GiB(uint64_t n) { return Bytes(n << 30); }
constexpr Bytes TiB(uint64_t n) { return Bytes(n << 40); }

// `size` rounded up, or down, to a multiple of `unit`, which need not be a power of two but must not be zero.
// Rounding up a size within `unit` of 2^64 wraps: callers bound sizes first.
constexpr Bytes RoundUp(Bytes size, Bytes unit) {
  return Bytes((size.count() + unit.count() - 1) / unit.count() * unit.count());
}
constexpr Bytes RoundDown(Bytes size, Bytes unit) { return Bytes(size.count() / unit.count() * unit.count()); }
constexpr bool IsMultipleOf(Bytes size, Bytes unit) { return size.count() % unit.count() == 0; }

// An address in a device's virtual address space. Address 0 is never valid memory and stands for "none".
class DeviceAddress {
 public:
  constexpr DeviceAddress() = default;
  explicit constexpr DeviceAddress(uint64_t value) : value_(value) {}
  static DeviceAddress FromPointer(const void* p) { return DeviceAddress(reinterpret_cast<uintptr_t>(p)); }

  [[nodiscard]] constexpr uint64_t value() const { return value_; }
  [[nodiscard]] constexpr bool is_null() const { return value_ == 0; }
  // The same address as the pointer that kernels and libraries take.
  [[nodiscard]] void* ptr() const { return reinterpret_cast<void*>(static_cast<uintptr_t>(value_)); }

  constexpr DeviceAddress& operator+=(Bytes n) {
    value_ += n.count();
    return *this;
  }
  friend constexpr DeviceAddress operator+(DeviceAddress a, Bytes n) { return DeviceAddress(a.value_ + n.count()); }
  friend constexpr DeviceAddress operator-(DeviceAddress a, Bytes n) { return DeviceAddress(a.value_ - n.count()); }
  // The distance from `b` up to `a`; `b` must not be above `a`.
  friend constexpr Bytes operator-(DeviceAddress a, DeviceAddress b) { return Bytes(a.value_ - b.value_); }
  friend constexpr bool operator==(DeviceAddress a, DeviceAddress b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(DeviceAddress a, DeviceAddress b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(DeviceAddress a, DeviceAddress b) { return a.value_ < b.value_; }
  friend constexpr bool operator<=(DeviceAddress a, DeviceAddress b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>(DeviceAddress a, DeviceAddress b) { return a.value_ > b.value_; }
  friend constexpr bool operator>=(DeviceAddress a, DeviceAddress b) { return a.value_ >= b.value_; }

  template <typename H>
  friend H AbslHashValue(H h, DeviceAddress a) {
    return H::combine(std::move(h), a.value_);
  }

 private:
  uint64_t value_ = 0;
};

// The half-open range [begin, begin + size).
struct AddressRange {
  DeviceAddress begin;
  Bytes size;

  [[nodiscard]] constexpr DeviceAddress end() const { return begin + size; }
  [[nodiscard]] constexpr bool Contains(DeviceAddress a) const { return a >= begin && a - begin < size; }
  [[nodiscard]] constexpr bool Contains(AddressRange other) const {
    return other.begin >= begin && other.end() <= end();
  }
  [[nodiscard]] constexpr bool Overlaps(AddressRange other) const { return begin < other.end() && other.begin < end(); }
  friend constexpr bool operator==(AddressRange a, AddressRange b) { return a.begin == b.begin && a.size == b.size; }
  friend constexpr bool operator!=(AddressRange a, AddressRange b) { return !(a == b); }
};

// The number of a device as the driver counts them, from 0.
class DeviceOrdinal {
 public:
  constexpr DeviceOrdinal() = default;
  explicit constexpr DeviceOrdinal(int value) : value_(value) {}
  [[nodiscard]] constexpr int value() const { return value_; }
  friend constexpr bool operator==(DeviceOrdinal a, DeviceOrdinal b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(DeviceOrdinal a, DeviceOrdinal b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(DeviceOrdinal a, DeviceOrdinal b) { return a.value_ < b.value_; }

 private:
  int value_ = 0;
};

// A stream as the driver names it: what CUstream or cudaStream_t holds. Opaque; never dereferenced here.
class StreamHandle {
 public:
  // The legacy default stream.
  constexpr StreamHandle() = default;
  explicit constexpr StreamHandle(void* raw) : raw_(raw) {}
  // CU_STREAM_PER_THREAD, the calling thread's default stream (cuda.h gives it the handle value 2).
  static StreamHandle PerThread() { return StreamHandle(reinterpret_cast<void*>(uintptr_t{2})); }
  [[nodiscard]] constexpr void* raw() const { return raw_; }
  friend constexpr bool operator==(StreamHandle a, StreamHandle b) { return a.raw_ == b.raw_; }
  friend constexpr bool operator!=(StreamHandle a, StreamHandle b) { return a.raw_ != b.raw_; }
  template <typename H>
  friend H AbslHashValue(H h, StreamHandle s) {
    return H::combine(std::move(h), s.raw_);
  }

 private:
  void* raw_ = nullptr;
};

// For messages: "1.50 GiB (1610612736 bytes)", "512 bytes", "3 chunks", "0x7f0000000000".
[[nodiscard]] std::string ToString(Bytes size);
[[nodiscard]] std::string ToString(ChunkCount count);
[[nodiscard]] std::string ToString(DeviceAddress address);
[[nodiscard]] std::string ToString(AddressRange range);

inline std::ostream& operator<<(std::ostream& os, Bytes size) { return os << ToString(size); }
inline std::ostream& operator<<(std::ostream& os, ChunkCount count) { return os << ToString(count); }
inline std::ostream& operator<<(std::ostream& os, DeviceAddress address) { return os << ToString(address); }
inline std::ostream& operator<<(std::ostream& os, AddressRange range) { return os << ToString(range); }

}  // namespace expanse

#endif  // EXPANSE_VMM_UNITS_H_

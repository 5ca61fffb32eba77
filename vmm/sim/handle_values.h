// Values for stream and event handles.

#ifndef EXPANSE_VMM_SIM_HANDLE_VALUES_H_
#define EXPANSE_VMM_SIM_HANDLE_VALUES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace expanse::sim {

// Gives out handle values as a driver's heap gives out addresses: the value freed last is the next one. Code that keeps
// a handle beyond its end therefore soon meets a stranger under it.
//
// The values are addresses of nothing: x86-64 and AArch64 fault on them, so code that looks behind one is found out.
// Not thread-safe.
template <typename Handle>
class HandleValues {
 public:
  // `kind` tells values of different kinds of handles apart.
  explicit HandleValues(uint8_t kind) : next_((uint64_t{0x5E} << 56) + (uint64_t{kind} << 48)) {}

  [[nodiscard]] Handle Take() {
    if (free_.empty()) return reinterpret_cast<Handle>(static_cast<uintptr_t>(next_ += kStep));
    const Handle handle = free_.back();
    free_.pop_back();
    return handle;
  }

  void Free(Handle handle) { free_.push_back(handle); }

  [[nodiscard]] bool IsFree(Handle handle) const {
    return std::find(free_.begin(), free_.end(), handle) != free_.end();
  }

 private:
  static constexpr uint64_t kStep = 64;  // Spaced like objects.

  uint64_t next_;
  std::vector<Handle> free_;
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_HANDLE_VALUES_H_

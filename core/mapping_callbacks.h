// What a program may want to know about memory that comes and goes behind addresses, to keep registrations up to date.

#ifndef EXPANSE_CORE_MAPPING_CALLBACKS_H_
#define EXPANSE_CORE_MAPPING_CALLBACKS_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "vmm/units.h"

namespace expanse {

// Both are called on the thread whose call maps or unmaps, which may be one that uses another allocator of the process
// and starves, with this allocator's lock held: they must be quick, must not throw, and must not call any allocator,
// which may deadlock. Either may be empty.
struct MappingCallbacks {
  // The memory at `range`, one chunk, is about to be unmapped; queued work is done with it, and no live block lies
  // there. False is a veto: the chunk stays where it is, and another one is taken. After true the chunk is unmapped,
  // or, if another callback or the driver will not have it, `after_map` follows for it.
  //
  // When the allocator is destroyed it is called for ranges of many chunks, live blocks included, and a veto is
  // ignored.
  std::function<bool(AddressRange range)> before_unmap;
  // Memory was mapped at `range`, one or more chunks, and may be used from now on.
  std::function<void(AddressRange range)> after_map;
};

// Names callbacks of one allocator. Never given twice; the default one names none.
class MappingCallbacksId {
 public:
  constexpr MappingCallbacksId() = default;
  explicit constexpr MappingCallbacksId(uint64_t value) : value_(value) {}
  [[nodiscard]] constexpr uint64_t value() const { return value_; }
  friend constexpr bool operator==(MappingCallbacksId a, MappingCallbacksId b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(MappingCallbacksId a, MappingCallbacksId b) { return a.value_ != b.value_; }

 private:
  uint64_t value_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_MAPPING_CALLBACKS_H_

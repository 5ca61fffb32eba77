// What the mapping callbacks of an allocator tell, held against what they may tell.

#ifndef EXPANSE_TESTS_STRESS_MAPPING_WATCH_H_
#define EXPANSE_TESTS_STRESS_MAPPING_WATCH_H_

#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse::stress {

// Knows from the callbacks alone which slots have memory behind them. Hears of every mapping if it listens before
// anything is allocated. Not thread-safe.
class MappingWatch {
 public:
  explicit MappingWatch(Bytes slot) : slot_(slot) {}

  // As the callbacks say; a breach is kept for status(). A range that was vetoed is not to be reported here.
  void Unmapping(AddressRange range);
  void Mapped(AddressRange range);

  [[nodiscard]] bool Knows(AddressRange range) const;
  [[nodiscard]] Bytes mapped() const { return slot_ * slots_.size(); }
  // OK, or the first breach: memory that is mapped where there was some, or unmapped where there was none, or a range
  // that is not made of slots.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  void CheckMadeOfSlots(AddressRange range);

  const Bytes slot_;
  std::set<DeviceAddress> slots_;
  absl::Status status_;
};

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_MAPPING_WATCH_H_

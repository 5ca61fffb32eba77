#include "tests/stress/mapping_watch.h"

#include "absl/strings/str_cat.h"

namespace expanse::stress {

void MappingWatch::CheckMadeOfSlots(AddressRange range) {
  if (!range.size.is_zero() && IsMultipleOf(range.size, slot_) && range.begin.value() % slot_.count() == 0) return;
  status_.Update(absl::InternalError(
      absl::StrCat("a callback was told of ", ToString(range), ", which is not made of slots of ", ToString(slot_))));
}

void MappingWatch::Unmapping(AddressRange range) {
  CheckMadeOfSlots(range);
  for (DeviceAddress at = range.begin; at < range.end(); at += slot_) {
    if (slots_.erase(at) == 1) continue;
    status_.Update(absl::InternalError(absl::StrCat(ToString(range), " is unmapped, and not all of it was mapped")));
  }
}

void MappingWatch::Mapped(AddressRange range) {
  CheckMadeOfSlots(range);
  for (DeviceAddress at = range.begin; at < range.end(); at += slot_) {
    if (slots_.insert(at).second) continue;
    status_.Update(absl::InternalError(absl::StrCat(ToString(range), " is mapped, and a part of it was already")));
  }
}

bool MappingWatch::Knows(AddressRange range) const {
  const DeviceAddress first(range.begin.value() / slot_.count() * slot_.count());
  for (DeviceAddress at = first; at < range.end(); at += slot_) {
    if (slots_.count(at) == 0) return false;
  }
  return true;
}

}  // namespace expanse::stress

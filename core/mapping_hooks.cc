#include "core/mapping_hooks.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse {

absl::StatusOr<MappingCallbacksId> MappingHooks::Add(MappingCallbacks callbacks) {
  if (!callbacks.before_unmap && !callbacks.after_map) {
    return absl::InvalidArgumentError("both mapping callbacks are empty, expected at least one to call");
  }
  hooks_.push_back(Hook{MappingCallbacksId(++last_), std::move(callbacks)});
  return hooks_.back().id;
}

absl::Status MappingHooks::Remove(MappingCallbacksId id) {
  const auto it = std::find_if(hooks_.begin(), hooks_.end(), [id](const Hook& hook) { return hook.id == id; });
  if (it == hooks_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there are no mapping callbacks ", id.value(), ": they were removed before, or never added"));
  }
  hooks_.erase(it);
  return absl::OkStatus();
}

bool MappingHooks::MayUnmap(AddressRange range) const {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    const MappingCallbacks& callbacks = hooks_[i].callbacks;
    if (!callbacks.before_unmap || callbacks.before_unmap(range)) continue;
    TellStillMapped(range, i);
    return false;
  }
  return true;
}

void MappingHooks::Mapped(AddressRange range) const {
  for (const Hook& hook : hooks_) {
    if (hook.callbacks.after_map) hook.callbacks.after_map(range);
  }
}

void MappingHooks::TellStillMapped(AddressRange range, size_t first_hooks) const {
  for (size_t i = 0; i < first_hooks; ++i) {
    const MappingCallbacks& callbacks = hooks_[i].callbacks;
    if (callbacks.before_unmap && callbacks.after_map) callbacks.after_map(range);
  }
}

void MappingHooks::WillUnmap(AddressRange range) const {
  for (const Hook& hook : hooks_) {
    if (hook.callbacks.before_unmap) (void)hook.callbacks.before_unmap(range);
  }
}

}  // namespace expanse

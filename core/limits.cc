// The part of the allocator that bounds how much it holds.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/allocator_impl.h"

namespace expanse {

absl::Status Allocator::Impl::SetLimit(std::optional<Bytes> limit) {
  MutexLock lock(mu_);
  if (limit && *limit < supply_.smallest()) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit is ", ToString(*limit), ", expected at least one chunk of ", ToString(supply_.smallest())));
  }
  limit_ = limit;
  // What the device has in all is a limit too: a hopeless request then fails before anything is created for it.
  const Bytes total = device_->total_memory();
  supply_.set_limit(std::min(limit.value_or(total), total));
  return limit ? TrimTo(*limit).status : absl::OkStatus();
}

absl::Status Allocator::Impl::SetSoftLimit(std::optional<Bytes> soft_limit, SoftLimitCallback callback) {
  if (soft_limit && callback == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the soft limit is ", ToString(*soft_limit), ", expected a callback that is told"));
  }
  std::optional<SoftLimitWarning> warning;
  {
    MutexLock lock(mu_);
    soft_limit_.Set(soft_limit, std::move(callback));
    soft_limit_.Update(supply_.pool().bytes());
    warning = soft_limit_.TakeDue();
  }
  if (warning) warning->Give();
  return absl::OkStatus();
}

}  // namespace expanse

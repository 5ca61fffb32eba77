// The part of the random program that is about how much memory is held: trims, limits, and memory created ahead.

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/stress/random_operations.h"

namespace expanse::stress {
namespace {

absl::Status Unexpected(const char* what, const absl::Status& status) {
  return absl::InternalError(absl::StrCat(what, ": ", status.ToString()));
}

}  // namespace

absl::Status RandomOperations::TrimSomething() {
  const PoolId pool = AnyPool();
  const Bytes target = shape_.memory * choices_.Below(5) / 4;
  absl::StatusOr<Bytes> released;
  switch (choices_.Below(4)) {
    case 0:
      released = allocator_.Trim(target);
      break;
    case 1:
      released = allocator_.Trim(target, TrimMode::kWait);
      break;
    case 2:
      if (!shape_.options.trim_after) return absl::OkStatus();
      released = allocator_.TrimUnused();
      if (released.ok() && !released->is_zero()) ++trimmed_unused_;
      break;
    default:
      released = allocator_.TrimPool(pool, target);
  }
  return released.ok() ? absl::OkStatus() : Unexpected("Trim", released.status());
}

// Now and then to less than is in use: then nothing can be created for some time.
absl::Status RandomOperations::ChangeLimits() {
  absl::Status status;
  if (choices_.Below(2) == 0) {
    std::optional<Bytes> limit;
    if (choices_.Below(2) == 0) limit = shape_.memory / 2 + shape_.slot * choices_.Below(32);
    if (choices_.Below(8) == 0) limit = shape_.slot * (1 + choices_.Below(16));
    status = allocator_.SetLimit(limit);
  } else {
    status = allocator_.SetSoftLimit(shape_.memory * choices_.Below(5) / 4,
                                     [this](Bytes reserved, Bytes soft_limit) { OnSoftLimit(reserved, soft_limit); });
  }
  return status.ok() ? status : Unexpected("setting a limit", status);
}

// On the thread of a job in the background too, so that nothing of the program is looked at.
void RandomOperations::OnSoftLimit(Bytes reserved, Bytes soft_limit) {
  ++warnings_;
  // No lock is held: any function may be called.
  if (reserved <= soft_limit || !allocator_.CheckInvariants().ok()) wrong_warning_ = true;
}

absl::Status RandomOperations::CreateAhead() {
  if (job_ && choices_.Below(2) == 0) {
    job_ = false;
    const absl::Status ended = allocator_.WaitForPrewarm();
    return ended.ok() || absl::IsResourceExhausted(ended) ? absl::OkStatus() : Unexpected("WaitForPrewarm", ended);
  }
  const Bytes target = shape_.memory * choices_.Below(9) / 8 + Bytes(choices_.Below(2));
  const bool background = shape_.background && choices_.Below(4) != 0;
  const uint64_t before = allocator_.GetStats().chunks_prewarmed;
  const absl::Status status =
      allocator_.Prewarm(target, background ? PrewarmMode::kBackground : PrewarmMode::kBlocking);
  job_ = background || (job_ && !status.ok());
  if (allocator_.GetStats().chunks_prewarmed > before) ++prewarmed_;
  // There is more than the limit, and there is more than limit and device have left.
  const bool refused = absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  return status.ok() || refused ? absl::OkStatus() : Unexpected("Prewarm", status);
}

}  // namespace expanse::stress

// A limit that warns instead of refusing.

#ifndef EXPANSE_CORE_SOFT_LIMIT_H_
#define EXPANSE_CORE_SOFT_LIMIT_H_

#include <optional>
#include <utility>

#include "core/options.h"
#include "vmm/units.h"

namespace expanse {

// A call of the program's callback that is due once no lock is held.
struct SoftLimitWarning {
  SoftLimitCallback callback;
  Bytes reserved;
  Bytes soft_limit;

  void Give() const { callback(reserved, soft_limit); }
};

// Tells when the reserved memory rises above the limit: once, and again only after it has been at or below it. Guarded
// by the allocator's lock, under which the callback is never called.
class SoftLimit {
 public:
  // `callback` is not empty if there is a limit. What is held above a new limit by then is a crossing too.
  void Set(std::optional<Bytes> limit, SoftLimitCallback callback) {
    limit_ = limit;
    callback_ = std::move(callback);
    above_ = due_ = false;
  }

  // So much is reserved now. Called after every change, by whichever thread made it. O(1).
  void Update(Bytes reserved) {
    const bool was_above = std::exchange(above_, limit_ && reserved > *limit_);
    due_ = above_ && (due_ || !was_above);
    reserved_ = reserved;
  }
  // The warning that is due, once: to be given when the lock is released. None any more if the memory has fallen again.
  [[nodiscard]] std::optional<SoftLimitWarning> TakeDue() {
    if (!std::exchange(due_, false)) return std::nullopt;
    return SoftLimitWarning{callback_, reserved_, *limit_};
  }

 private:
  std::optional<Bytes> limit_;
  SoftLimitCallback callback_;
  Bytes reserved_;
  bool above_ = false;
  bool due_ = false;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_SOFT_LIMIT_H_

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
    above_ = false;
  }

  // So much is reserved now. O(1) but for a warning. The caller gives the warning after it has released the lock.
  [[nodiscard]] std::optional<SoftLimitWarning> Update(Bytes reserved) {
    const bool was_above = std::exchange(above_, limit_ && reserved > *limit_);
    if (!above_ || was_above) return std::nullopt;
    return SoftLimitWarning{callback_, reserved, *limit_};
  }

 private:
  std::optional<Bytes> limit_;
  SoftLimitCallback callback_;
  bool above_ = false;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_SOFT_LIMIT_H_

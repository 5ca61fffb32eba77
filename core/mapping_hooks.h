// The callbacks that are told of mapping and unmapping.

#ifndef EXPANSE_CORE_MAPPING_HOOKS_H_
#define EXPANSE_CORE_MAPPING_HOOKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mapping_callbacks.h"
#include "vmm/units.h"

namespace expanse {

// Calls them in the order of adding. Guarded by the allocator's lock, which is held while they run: so a callback that
// was removed is not running any more.
class MappingHooks {
 public:
  // INVALID_ARGUMENT if there is nothing to call.
  [[nodiscard]] absl::StatusOr<MappingCallbacksId> Add(MappingCallbacks callbacks);
  // NOT_FOUND for an id that was removed or never given out.
  [[nodiscard]] absl::Status Remove(MappingCallbacksId id);

  // Whether all let the chunk at `range` be unmapped. The first veto ends it: those that had agreed are told by
  // after_map that the chunk stays.
  [[nodiscard]] bool MayUnmap(AddressRange range) const;
  // Chunks are mapped at `range`.
  void Mapped(AddressRange range) const;
  // Chunks that all let go are mapped at `range` all the same.
  void StillMapped(AddressRange range) const { TellStillMapped(range, hooks_.size()); }
  // The chunks at `range` will be unmapped, whatever is answered.
  void WillUnmap(AddressRange range) const;

  [[nodiscard]] bool empty() const { return hooks_.empty(); }

 private:
  // Tells the first hooks, as far as they had been asked.
  void TellStillMapped(AddressRange range, size_t first_hooks) const;

  struct Hook {
    MappingCallbacksId id;
    MappingCallbacks callbacks;
  };

  std::vector<Hook> hooks_;
  uint64_t last_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_MAPPING_HOOKS_H_

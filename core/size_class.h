// Which requests share a segment set.

#ifndef EXPANSE_CORE_SIZE_CLASS_H_
#define EXPANSE_CORE_SIZE_CLASS_H_

#include "vmm/units.h"

namespace expanse {

// Blocks of a class are packed together, apart from those of other classes: small blocks, which live long or come and
// go often, then do not split the ranges that large ones need. Chunks move between classes as they do between streams.
inline constexpr int kSizeClassCount = 2;

// The class of a request of `size` bytes, from 0 to kSizeClassCount - 1. O(1).
[[nodiscard]] constexpr int SizeClassOf(Bytes size) { return size <= MiB(1) ? 0 : 1; }

}  // namespace expanse

#endif  // EXPANSE_CORE_SIZE_CLASS_H_

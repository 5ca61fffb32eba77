// Which driver handles lie behind a range of addresses.

#ifndef EXPANSE_CORE_HANDLE_SPAN_H_
#define EXPANSE_CORE_HANDLE_SPAN_H_

#include <cstdint>

#include "vmm/units.h"

namespace expanse {

// The part of a range that lies in one chunk, for whoever registers or exports memory handle by handle.
struct HandleSpan {
  uint64_t handle = 0;  // a CUmemGenericAllocationHandle; it stays the allocator's
  AddressRange chunk;   // where the whole of the handle's memory is mapped
  Bytes offset;         // of the part, from the begin of the handle's memory
  Bytes length;         // of the part

  [[nodiscard]] AddressRange range() const { return {chunk.begin + offset, length}; }
};

}  // namespace expanse

#endif  // EXPANSE_CORE_HANDLE_SPAN_H_

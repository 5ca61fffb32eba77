// Statistics. docs/design.md defines each figure; the words are the same in the tool's JSON and in error messages.

#ifndef EXPANSE_CORE_STATS_H_
#define EXPANSE_CORE_STATS_H_

#include <cstdint>

#include "vmm/units.h"

namespace expanse {

// A quantity over time.
struct Figure {
  Bytes current;
  Bytes peak;   // highest `current` since creation or the last ResetPeaks
  Bytes total;  // sum of all increases since creation
};

struct Stats {
  Figure live;           // bytes asked for and not freed
  Figure allocated;      // live, each block rounded up to 512 bytes
  Figure pending;        // freed, but a stream other than the block's own may still use it
  Figure reserved;       // every physical byte held: mapped, spare or quarantined
  Figure idle;           // bytes of wholly free chunks, mapped or spare
  Figure pinned;         // bytes that may not move; nothing pins memory yet
  Figure address_space;  // reserved addresses

  uint64_t allocations = 0;  // requests served
  uint64_t frees = 0;
  uint64_t failed_allocations = 0;  // requests refused as out of memory
  uint64_t live_blocks = 0;

  uint64_t chunks_created = 0;
  uint64_t chunks_moved = 0;
  uint64_t chunks_released = 0;
  uint64_t chunks_quarantined = 0;  // the driver would not unmap or release them; never used again, part of reserved
  uint64_t growths = 0;             // requests that no mapped range fitted
  uint64_t waits = 0;               // times a caller waited for a stream or the context to get memory back
  uint64_t other_allocators_asked = 0;  // times that other allocators of the process were asked for idle memory
  uint64_t callbacks_asked = 0;         // times that the program's callbacks were asked to free memory
};

}  // namespace expanse

#endif  // EXPANSE_CORE_STATS_H_

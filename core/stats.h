// Statistics. docs/statistics.md explains each figure, and names those that PyTorch has too; docs/design.md defines the
// words, which are the same in the tool's JSON and in error messages.

#ifndef EXPANSE_CORE_STATS_H_
#define EXPANSE_CORE_STATS_H_

#include <chrono>
#include <cstdint>

#include "core/process_budgets.h"
#include "vmm/units.h"

namespace expanse {

// A quantity over time.
struct Figure {
  Bytes current;
  Bytes peak;   // highest `current` since creation or the last ResetPeaks
  Bytes total;  // sum of all increases since creation
};

// Times that callers had to wait, and for how long together, on the host's clock.
struct Stalls {
  uint64_t count = 0;
  std::chrono::nanoseconds time{0};
};

// Moves that neither limit nor device forced, in modelled time: what they cost, and what was allowed for them by all
// that was created so far.
struct MoveAllowance {
  std::chrono::nanoseconds spent{0};
  std::chrono::nanoseconds allowed{0};
};

// How often each rung of the out-of-memory ladder did something, in the order in which they are climbed. One request
// may climb several, and one several times. Not all requests for which a rung worked were served by it.
struct RungCounts {
  uint64_t collected = 0;        // blocks that other streams had finished with became free memory again
  uint64_t moved = 0;            // idle chunks were unmapped, to be mapped where memory is wanted
  uint64_t created = 0;          // chunks were created
  uint64_t other_class = 0;      // a free block of another of the stream's size classes served the request
  uint64_t others_asked = 0;     // other allocators of the process were asked for idle memory
  uint64_t callbacks_asked = 0;  // the program's callbacks were asked to free memory
  uint64_t waited = 0;           // queued work that held memory back was waited for
  uint64_t synchronized = 0;     // the whole context was waited for
  uint64_t failed = 0;           // the request failed as out of memory
};

struct Stats {
  Figure live;           // bytes asked for and not freed
  Figure allocated;      // live, each block rounded up to 512 bytes
  Figure pending;        // freed, but a stream other than the block's own may still use it
  Figure reserved;       // every physical byte held: mapped, spare or quarantined
  Figure idle;           // bytes of wholly free chunks that are not pinned, mapped or spare
  Figure pinned;         // bytes of chunks that may not move, free or not
  Figure prewarmed;      // the part of idle that Prewarm created and no growth has taken yet
  Figure address_space;  // reserved addresses

  uint64_t allocations = 0;  // requests served
  uint64_t frees = 0;
  uint64_t failed_allocations = 0;  // requests refused as out of memory
  uint64_t live_blocks = 0;

  uint64_t chunks_created = 0;
  uint64_t chunks_prewarmed = 0;  // created by Prewarm, and part of chunks_created
  uint64_t chunks_moved = 0;
  uint64_t chunks_refilled = 0;  // mapped where a chunk had been moved or trimmed away before
  uint64_t chunks_released = 0;
  uint64_t chunks_quarantined = 0;  // the driver would not unmap or release them; never used again, part of reserved
  uint64_t growths = 0;             // requests that no mapped range fitted
  uint64_t waits = 0;               // times a caller waited for a stream or the context to get memory back
  RungCounts rungs;
  MoveAllowance unforced_moves;

  Stalls gpu_stalls;      // callers waited for queued work; `count` is `waits`
  Stalls lock_stalls;     // callers waited for another thread, which may have been inside the driver
  Stalls prewarm_stalls;  // callers waited for memory that was being created ahead

  // Calls that this allocator made of the driver, its creation included, and the host time inside them.
  uint64_t driver_calls = 0;
  std::chrono::nanoseconds driver_time{0};

  // Shared with all other allocators of the process.
  ProcessBudgets process;
};

// What one stream, or another part of an allocator, holds at one moment.
struct HeapStats {
  Bytes live;           // bytes asked for and not freed
  Bytes allocated;      // live, each block rounded up to 512 bytes
  Bytes pending;        // freed, but a stream other than the block's own may still use it
  Bytes free;           // mapped and to be had
  Bytes largest_free;   // the largest free block
  Bytes mapped;         // chunks behind addresses: allocated, pending and free together
  Bytes idle;           // of these, chunks that are wholly free and not pinned
  Bytes address_space;  // addresses of its segments
  uint64_t live_blocks = 0;
  uint64_t pending_blocks = 0;
  uint64_t segments = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_STATS_H_

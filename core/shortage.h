// What is known when a request cannot be served: for the program's callbacks, and for the error.

#ifndef EXPANSE_CORE_SHORTAGE_H_
#define EXPANSE_CORE_SHORTAGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vmm/units.h"

namespace expanse {

// The state of an allocator at the moment when a request could not be served.
struct Shortage {
  Bytes asked;
  Bytes rounded;
  // Physical memory that would have to be created for the request, and the part of it that limits, handle budget or
  // device do not allow. Both are zero if something else is missing, such as addresses.
  Bytes needed;
  Bytes missing;
  Bytes live;
  Bytes allocated;
  Bytes pending;
  std::vector<std::string> pending_on;  // the streams, each once
  Bytes idle;
  Bytes pinned;
  Bytes partly_used;   // free bytes of chunks that are also in use, or pinned
  Bytes largest_free;  // the largest free mapped range for this stream and size class
  Bytes reserved;
  Bytes quarantined;
  std::optional<Bytes> limit;
  std::string pool;  // the name of the pool that was asked
  std::optional<Bytes> pool_limit;
  Bytes pool_reserved;
  bool pool_is_full = false;         // it is the pool's limit that was in the way
  std::optional<Bytes> device_free;  // none: the driver did not say
  Bytes device_total;
  Bytes chunk_size;
  Bytes granularity;
  uint64_t handles_left = 0;
  Bytes addresses_left;
  // What was tried for this request.
  int other_allocators_asked = 0;
  int callback_rounds = 0;
  int waits = 0;
  std::string reason;  // what the last attempt ended with
};

// Called, without any lock held, when a request is about to wait for queued work or to fail. It may call every function
// of every allocator, and should free what it can spare, `missing` bytes at best. True: try again. It is not called for
// requests that it makes itself. Several threads may call it at once: one whose memory another call is just freeing
// should wait for that call and return true. It must not throw.
using OutOfMemoryCallback = std::function<bool(const Shortage&)>;

// Names a callback until it is removed; never used again.
using CallbackId = uint64_t;

}  // namespace expanse

#endif  // EXPANSE_CORE_SHORTAGE_H_

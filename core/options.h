// What an allocator can be told. Every default is meant to be right: no option has to be set to avoid running out of
// memory.

#ifndef EXPANSE_CORE_OPTIONS_H_
#define EXPANSE_CORE_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "vmm/units.h"

namespace expanse {

// When no mapped memory fits a request: create chunks, or move idle ones there first. docs/design.md has the policies.
enum class Growth {
  kLazy,      // create until the limit or the device refuses, then move
  kBalanced,  // create while little more is held than was ever in use; beyond that move first, within a budget
  kFrugal,    // move first, create only what is then still missing
};

// Told, without any lock held, that the reserved memory has risen above the soft limit. Called by the thread whose
// request or call made it rise; may call every function of every allocator. It must not throw.
using SoftLimitCallback = std::function<void(Bytes reserved, Bytes soft_limit)>;

// Whether Trim may wait for queued work that holds memory back.
enum class TrimMode { kNoWait, kWait };

// Whether Prewarm returns when the memory is there, or at once while a thread of the allocator creates it.
enum class PrewarmMode { kBlocking, kBackground };

struct AllocatorOptions {
  DeviceOrdinal device;
  // Size of every chunk of physical memory: a multiple of the device's granularity. None: 2 MiB, or the granularity
  // where that is larger, and for large blocks up to 16 times that while memory is plentiful.
  std::optional<Bytes> chunk_size;
  // The most physical memory the allocator may hold, in bytes, or as a part of the device's memory, above 0 and up
  // to 1. Not both. None: whatever the device gives.
  std::optional<Bytes> limit;
  std::optional<double> limit_fraction;
  // Holding more than this is allowed, and reported by a call of `on_soft_limit`: once each time that it is crossed.
  std::optional<Bytes> soft_limit;
  SoftLimitCallback on_soft_limit;
  Growth growth = Growth::kBalanced;
  // Memory that nothing has needed for this long is given back to the device; see Allocator::TrimUnused for when.
  // Positive. None: memory is kept until it is trimmed or another allocator of the process starves.
  std::optional<std::chrono::nanoseconds> trim_after;
  // The clock of `trim_after`, which does not go back: called under the allocator's lock, so it must not call it. None:
  // std::chrono::steady_clock.
  std::function<std::chrono::nanoseconds()> clock;
  // How many of the latest events the recorder keeps, at 32 bytes each; at most kMostRecordedEvents. See
  // Allocator::GetRecording.
  static constexpr uint64_t kMostRecordedEvents = uint64_t{1} << 30;
  uint64_t record_events = 0;
  // Addresses reserved at creation, in multiples of the device's memory, rounded up to a power of two bytes. Halved
  // down to 1 while the driver refuses.
  int address_space_multiple = 8;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_OPTIONS_H_

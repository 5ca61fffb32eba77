// A range of addresses that PyTorch's expandable policy backs with physical memory chunk by chunk.

#ifndef EXPANSE_BENCH_ALLOCATORS_EXPANDABLE_SEGMENT_H_
#define EXPANSE_BENCH_ALLOCATORS_EXPANDABLE_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/chunk.h"
#include "vmm/driver.h"
#include "vmm/reservation.h"
#include "vmm/units.h"

namespace expanse::bench {

// Source: ExpandableSegment in c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.6: map, unmapHandles, mapAndSetAccess. The
// order of driver calls is PyTorch's: to grow, all handles are created, then all mapped, then one call opens the whole
// range; to shrink, each chunk is unmapped and released in turn. Handles are never kept.
//
// Unlike there, a failure of any call undoes what this growth did. Where the driver refuses to undo, the chunk keeps
// its place (`stranded`): it counts as held, and the next growth over it goes on from the state it is in.
//
// Not thread-safe: the allocator's lock guards it. Nothing here waits for queued work; callers do before they unmap.
class ExpandableSegment {
 public:
  // `size` is a multiple of `chunk`. One driver call.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ExpandableSegment>> Create(const Driver& driver,
                                                                                 DeviceOrdinal device, Bytes size,
                                                                                 Bytes chunk);
  // Gives everything back, and ignores what the driver answers.
  ~ExpandableSegment();
  ExpandableSegment(const ExpandableSegment&) = delete;
  ExpandableSegment& operator=(const ExpandableSegment&) = delete;

  [[nodiscard]] AddressRange range() const { return reservation_.range(); }
  // `inner` grown to whole chunks.
  [[nodiscard]] AddressRange Cover(AddressRange inner) const;
  // The whole chunks inside `outer`; of size zero if there are none.
  [[nodiscard]] AddressRange Inside(AddressRange outer) const;
  // Physical memory held.
  [[nodiscard]] Bytes physical() const { return chunk_ * held_; }
  // Whether every chunk of a range of whole chunks is mapped.
  [[nodiscard]] bool IsMapped(AddressRange chunks) const;
  // Whether some chunk was left behind by an undo that the driver refused.
  [[nodiscard]] bool stranded() const { return stranded_; }
  // Handles created so far.
  [[nodiscard]] uint64_t created() const { return created_; }

  // Puts memory behind a range of whole chunks that has none: all of it or nothing. RESOURCE_EXHAUSTED if the device
  // has no more.
  [[nodiscard]] absl::Status Map(AddressRange chunks);

  // Unmaps and releases a range of whole chunks from its beginning. At a refusal it stops: what comes before
  // `unmapped.end()` is unmapped, the rest is as before.
  struct UnmapResult {
    AddressRange unmapped;
    absl::Status status;
  };
  [[nodiscard]] UnmapResult Unmap(AddressRange chunks);

  // Gives the addresses back. Nothing may be mapped; stranded chunks are given back too. After a failure the segment
  // is still there.
  [[nodiscard]] absl::Status Close();

 private:
  struct Slot {
    Chunk chunk;
    bool mapped = false;
  };

  ExpandableSegment(const Driver& driver, DeviceOrdinal device, Reservation reservation, Bytes chunk);

  size_t IndexOf(DeviceAddress address) const { return (address - range().begin) / chunk_; }
  DeviceAddress AddressOf(size_t index) const { return range().begin + chunk_ * index; }
  absl::Status CreateSlot(size_t index);
  absl::Status MapSlot(size_t index);
  absl::Status UnmapSlot(size_t index);
  absl::Status ReleaseSlot(size_t index);
  absl::Status OpenAccess(AddressRange chunks);

  const Driver& driver_;
  const DeviceOrdinal device_;
  Reservation reservation_;
  const Bytes chunk_;
  std::vector<Slot> slots_;  // by chunk from the beginning, as far as was ever needed
  uint64_t held_ = 0;
  uint64_t created_ = 0;
  bool stranded_ = false;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_EXPANDABLE_SEGMENT_H_

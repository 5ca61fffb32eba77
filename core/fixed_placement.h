// Placement that depends on the sequence of requests alone: that of a stream in a deterministic pool.

#ifndef EXPANSE_CORE_FIXED_PLACEMENT_H_
#define EXPANSE_CORE_FIXED_PLACEMENT_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/block.h"
#include "core/layout.h"
#include "core/segment.h"
#include "vmm/units.h"

namespace expanse {

// Blocks are placed in the layout first, and memory is then brought to where they are. A block's place is vacated when
// the program frees it, be it that other streams still use it: then whoever is placed there waits for them. To vacate
// it only later would be simpler to serve and wrong: either it depends on when work completes, or what lay there in one
// step is still occupied when the next begins, which then would not get the addresses of the step before.
//
// Invariant: the used and quarantined blocks of the segments, and no others, occupy the layouts.
// Guarded by the allocator's lock.
class FixedPlacement {
 public:
  struct Place {
    Segment* segment = nullptr;
    AddressRange range;
    Block* first = nullptr;  // the block that begins there: free, a hole or pending
  };

  // The next segment to place blocks in when those before have no room.
  void AddSegment(Segment* segment);
  // Nothing is placed in the segment, nor will be.
  void RemoveSegment(const Segment& segment);

  // Where a block of `size` goes: in the first segment that has a gap for it. None if no segment has. O(segments x log
  // blocks).
  [[nodiscard]] std::optional<Place> Find(Bytes size) const;
  // Takes a block where it goes if one free mapped block holds it all there; else null. O(as Find + slots of the
  // block).
  [[nodiscard]] Block* TakeMapped(Bytes size);

  // The used block lies where Find said.
  void Occupy(Block* used);
  // The program freed the used block.
  void Vacate(const Block* used);
  // Slots were quarantined in the segment: no block will be placed there any more. O(blocks of the segment).
  void NoteQuarantined(const Segment& segment);

  // OK, or INTERNAL naming the first inconsistency. O(blocks).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Part {
    Segment* segment;
    Layout layout;
    // Where an occupied block ends, a gap may begin: this leads from there to what lies in the gap.
    absl::flat_hash_map<DeviceAddress, Block*> by_end;
  };

  Part& PartOf(const Segment& segment);
  static void Occupy(Part& part, Block* block);

  std::vector<std::unique_ptr<Part>> parts_;  // in the order of adding
};

}  // namespace expanse

#endif  // EXPANSE_CORE_FIXED_PLACEMENT_H_

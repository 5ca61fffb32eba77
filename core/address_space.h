// The addresses of an allocator, handed out in slabs.

#ifndef EXPANSE_CORE_ADDRESS_SPACE_H_
#define EXPANSE_CORE_ADDRESS_SPACE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/budget.h"
#include "vmm/device.h"
#include "vmm/reservation.h"
#include "vmm/units.h"

namespace expanse {

// One device memory of addresses, rounded up to whole chunks, so that any request the device can serve fits in one.
struct Slab {
  AddressRange range;
  const Reservation* reservation = nullptr;
};

// One large reservation at first; when its slabs are used up, further ones of one slab each. Reservations stay until
// the address space is destroyed, and count against the process-wide budget until then.
//
// Invariant: slabs handed out and slabs at hand tile the reservations, each reservation's remainder apart.
// Guarded by the allocator's lock.
class AddressSpace {
 public:
  // `device` and `budget` must outlive it. Reserves nothing yet.
  AddressSpace(const Device& device, Bytes chunk_size, Budget& budget);
  // Frees the reservations, and ignores what the driver answers. Everything in them must be unmapped.
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Makes the first reservation: `multiple` times the device's memory, rounded up to a power of two bytes, halved while
  // the driver or the budget refuses, down to one slab. RESOURCE_EXHAUSTED when not even that is left.
  [[nodiscard]] absl::Status ReserveFirst(int multiple);

  // A slab that nobody has. One driver call when none is at hand. RESOURCE_EXHAUSTED names what refused.
  [[nodiscard]] absl::StatusOr<Slab> Take();
  // Gives back a slab in which nothing is mapped.
  void Give(const Slab& slab) { at_hand_.push_back(slab); }

  [[nodiscard]] Bytes slab_size() const { return slab_size_; }
  [[nodiscard]] Bytes reserved() const { return reserved_; }
  // The bytes of all slabs, handed out or at hand.
  [[nodiscard]] Bytes slabs() const { return slabs_; }
  [[nodiscard]] size_t slabs_at_hand() const { return at_hand_.size(); }
  // OK, or INTERNAL naming the inconsistency. O(slabs at hand, squared).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  absl::Status Reserve(Bytes wanted);

  const Device& device_;
  Budget& budget_;
  const Bytes slab_size_;
  Bytes reserved_;
  Bytes slabs_;
  std::deque<Reservation> reservations_;  // addresses of elements are stable
  std::vector<Slab> at_hand_;             // the next one to hand out last
};

}  // namespace expanse

#endif  // EXPANSE_CORE_ADDRESS_SPACE_H_

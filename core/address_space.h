// The addresses of an allocator, handed out in slabs.

#ifndef EXPANSE_CORE_ADDRESS_SPACE_H_
#define EXPANSE_CORE_ADDRESS_SPACE_H_

#include <deque>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/budget.h"
#include "vmm/device.h"
#include "vmm/reservation.h"
#include "vmm/units.h"

namespace expanse {

// A range of addresses for one segment, a multiple of the chunk size.
struct Slab {
  AddressRange range;
  const Reservation* reservation = nullptr;
};

// One large reservation at first; when it is used up, further ones of one device memory each. Reservations stay until
// the address space is destroyed, and count against the process-wide budget until then.
//
// How large a slab is: large as long as there are plenty of addresses, so that the free memory of a stream coalesces,
// and small once there are not, so that thousands of streams find some. While more than one device memory is at hand, a
// quarter of that, but no more than one device memory; then a 256th of one. At least as much as the stream has already
// for blocks of this size, up to one device memory, so that the slabs of one that keeps growing double; and at least
// what the request needs, in any case.
//
// With the usual eight device memories the first five slabs are one device memory each. On a device of 80 GiB 5,000
// streams with two slabs each take 3.8 TiB of addresses.
//
// Invariants: what is at hand and what is handed out tile the reservations, each one's remainder of less than a chunk
// apart; no two ranges at hand could be one. Guarded by the allocator's lock.
class AddressSpace {
 public:
  // `device` and `budget` must outlive it. Reserves nothing yet.
  AddressSpace(const Device& device, Bytes chunk_size, Budget& budget);
  // Frees the reservations, and ignores what the driver answers. Everything in them must be unmapped.
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Makes the first reservation: `multiple` times the device's memory, rounded up to a power of two bytes, halved while
  // the driver or the budget refuses, down to one device memory. RESOURCE_EXHAUSTED when not even that is left.
  [[nodiscard]] absl::Status ReserveFirst(int multiple);

  // Makes the first reservation, of this size and no less. RESOURCE_EXHAUSTED says what refused.
  [[nodiscard]] absl::Status ReserveWhole(Bytes size) { return Reserve(size, size); }

  // A slab that nobody has, at the lowest address that has room, for a request of `size` by a stream that has `held`
  // bytes of addresses for its size class. One driver call when there is no room at hand. Where neither driver nor
  // budget give more, what is at hand will do if it holds the request. RESOURCE_EXHAUSTED names what refused.
  // O(ranges at hand).
  [[nodiscard]] absl::StatusOr<Slab> Take(Bytes size, Bytes held);
  // The same, out of what is at hand alone. RESOURCE_EXHAUSTED if that does not hold the request. No driver call.
  [[nodiscard]] absl::StatusOr<Slab> TakeWithin(Bytes size, Bytes held);
  // Gives back a slab in which nothing is mapped. O(log ranges at hand).
  void Give(const Slab& slab);

  // What the first reservation got.
  [[nodiscard]] AddressRange first() const { return reservations_.front().range(); }
  [[nodiscard]] Bytes reserved() const { return reserved_; }
  // The bytes of all slabs that are handed out, or could be.
  [[nodiscard]] Bytes usable() const { return usable_; }
  [[nodiscard]] Bytes at_hand() const { return at_hand_bytes_; }
  // OK, or INTERNAL naming the inconsistency. O(ranges at hand).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  // By begin; neighbours in one reservation are merged.
  using Ranges = absl::btree_map<DeviceAddress, Slab>;

  absl::Status Reserve(Bytes wanted, Bytes at_least);
  Bytes PreferredSize(Bytes needed, Bytes held) const;
  // Cuts a slab of `preferred` bytes off the lowest range that has them, else off the largest range if it has `needed`.
  std::optional<Slab> TakeAtHand(Bytes needed, Bytes preferred);
  Slab CutFront(Ranges::iterator range, Bytes size);

  const Device& device_;
  Budget& budget_;
  const Bytes chunk_size_;
  const Bytes largest_slab_;  // one device memory, rounded up to whole chunks: any request that it can serve fits in
  Bytes reserved_;
  Bytes usable_;
  Bytes at_hand_bytes_;
  std::deque<Reservation> reservations_;  // addresses of elements are stable
  Ranges at_hand_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_ADDRESS_SPACE_H_

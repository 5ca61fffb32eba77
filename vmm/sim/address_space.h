// The simulated address space: which addresses are taken, by reservations and by classic allocations.

#ifndef EXPANSE_VMM_SIM_ADDRESS_SPACE_H_
#define EXPANSE_VMM_SIM_ADDRESS_SPACE_H_

#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "vmm/sim/config.h"
#include "vmm/units.h"

namespace expanse::sim {

// Hands out address ranges and remembers them.
//
// In the real mode ranges are taken from this process, so no other code gets the same addresses; in the accounting mode
// they are invented, from kFirstInvented upwards, and reused only after the space was walked through once, so a stale
// address stays recognisable for long.
//
// Invariants: ranges are disjoint, and multiples of the host page; the reservations' sizes add up to reserved_bytes()
// and, with the classic ranges', to no more than the limit. Not synchronised: the simulator's mutex guards it.
class AddressSpace {
 public:
  static constexpr DeviceAddress kFirstInvented{uint64_t{1} << 32};

  enum class Use { kReservation, kClassic };

  AddressSpace(MemoryMode mode, Bytes limit) : mode_(mode), limit_(limit), cursor_(kFirstInvented) {}
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Takes a range; at `hint` if that is not null, free, and a multiple of `alignment`. `size` is a multiple of the host
  // page, `alignment` a power of two of at least a page. Empty if there is no room.
  // O(log n) unless the space is crowded, then O(n).
  [[nodiscard]] std::optional<DeviceAddress> Take(Bytes size, Bytes alignment, DeviceAddress hint, Use use);
  // Gives back the range that starts at `begin`, which must have been taken.
  void GiveBack(DeviceAddress begin);

  // The whole reservation that holds the address, or starts at it; empty if there is none. O(log n).
  [[nodiscard]] std::optional<AddressRange> FindReservation(DeviceAddress address) const;

  [[nodiscard]] uint64_t reservations() const { return reservations_; }
  [[nodiscard]] Bytes reserved_bytes() const { return reserved_; }
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Taken {
    Bytes size;
    Use use;
  };
  [[nodiscard]] bool IsFree(AddressRange range) const;
  [[nodiscard]] std::optional<DeviceAddress> Invent(Bytes size, Bytes alignment);
  // The first fit whose begin is in [from, to).
  [[nodiscard]] std::optional<DeviceAddress> FirstFit(DeviceAddress from, DeviceAddress to, Bytes size,
                                                      Bytes alignment) const;
  [[nodiscard]] DeviceAddress invented_end() const { return kFirstInvented + limit_; }

  const MemoryMode mode_;
  const Bytes limit_;
  DeviceAddress cursor_;                    // Where the search for invented addresses goes on.
  absl::btree_map<uint64_t, Taken> taken_;  // By begin.
  uint64_t reservations_ = 0;
  Bytes reserved_;
  Bytes taken_bytes_;  // Reservations and classic ranges.
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_ADDRESS_SPACE_H_

// The allocators of one device in this process, which give idle memory back for each other.

#ifndef EXPANSE_CORE_PEERS_H_
#define EXPANSE_CORE_PEERS_H_

#include <functional>

#include "vmm/units.h"

namespace expanse {

// An allocator's membership in the process-wide list of its device. Thread-safe.
//
// Locks: one is held while members are asked, and the allocators' own locks come after it. So AskOthers and the
// destructor may not be called with an allocator's lock held, nor from a `give_back`.
class Peer {
 public:
  // Gives up to `wanted` bytes of idle memory back to the device, without waiting for queued work; returns how much.
  using GiveBack = std::function<Bytes(Bytes wanted)>;

  // From now on the others may ask this one.
  Peer(DeviceOrdinal device, GiveBack give_back);
  // Nobody asks this one any more, nor is just asking it. Blocks while somebody is.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Whether anybody could be asked. May be called with an allocator's lock held: it takes a lock under which nobody is
  // asked. O(allocators of the process).
  [[nodiscard]] bool HasOthers() const;
  // Asks the others in turn, longest there first, until they gave `wanted` bytes back; returns how much they did.
  // Makes driver calls, and blocks while another thread is asking.
  [[nodiscard]] Bytes AskOthers(Bytes wanted) const;

 private:
  const DeviceOrdinal device_;
  const GiveBack give_back_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_PEERS_H_

// Putting chunks behind addresses and taking them away again.

#ifndef EXPANSE_VMM_MAPPING_H_
#define EXPANSE_VMM_MAPPING_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "vmm/chunk_pool.h"
#include "vmm/reservation.h"
#include "vmm/units.h"

namespace expanse {

// A chunk that the driver mapped and then refused to unmap. The pool has quarantined the chunk; the owner of the
// addresses must never use them again.
struct QuarantinedMapping {
  ChunkId chunk;
  AddressRange range;
};

// Maps any number of spare chunks in one reservation and makes them accessible to their device, all or none:
//
//   MapTransaction growth(pool, reservation);
//   for (...) ASSIGN id = growth.Map(address, chunk_size);     // one cuMemMap each
//   growth.Commit();                                           // one cuMemSetAccess per contiguous run
//
// A failure of either, or destruction without Commit, unmaps exactly what was mapped, in reverse, and the chunks are
// spare again. If the driver refuses to unmap one, it ends up in quarantined().
//
// Externally synchronised, by the lock of the pool. Pool and reservation must outlive it, and nobody else may change
// the pool meanwhile.
class MapTransaction {
 public:
  MapTransaction(ChunkPool& pool, const Reservation& reservation);
  ~MapTransaction();
  MapTransaction(const MapTransaction&) = delete;
  MapTransaction& operator=(const MapTransaction&) = delete;

  // Maps the pool's latest spare chunk of `size` at `address`, a multiple of the granularity, where nothing is mapped,
  // and returns which chunk that is. INVALID_ARGUMENT if the place is outside the reservation, NOT_FOUND if no chunk of
  // that size is spare, FAILED_PRECONDITION after Commit or a failure; or the driver's error. After any error
  // everything is undone.
  [[nodiscard]] absl::StatusOr<ChunkId> Map(DeviceAddress address, Bytes size);

  // Makes everything that was mapped readable and writable by the device. Afterwards the chunks are mapped for good.
  [[nodiscard]] absl::Status Commit();

  // What could not be undone; empty unless something failed twice.
  [[nodiscard]] absl::Span<const QuarantinedMapping> quarantined() const { return quarantined_; }

 private:
  absl::StatusOr<ChunkId> MapOne(DeviceAddress address, Bytes size) const;
  absl::Status SetAccess(AddressRange run) const;
  void Undo();

  ChunkPool& pool_;
  const AddressRange reservation_;
  std::vector<ChunkId> mapped_;  // in the order of mapping
  std::vector<QuarantinedMapping> quarantined_;
  bool ended_ = false;
};

// Unmaps mapped chunks, in any order, all inside `reservation`: one driver call per contiguous run. They become spare.
// The device must be done with them: the driver unmaps at once, whatever work is queued.
//
// Stops at the first refusal. Nothing is then assumed unmapped: the chunks of that run and of later ones stay mapped
// (ask the pool), and the caller decides whether to quarantine them. INVALID_ARGUMENT, and nothing happens, if one
// is not mapped or lies outside the reservation. O(n log n).
[[nodiscard]] ChunkProgress UnmapChunks(ChunkPool& pool, const Reservation& reservation,
                                        absl::Span<const ChunkId> chunks);

}  // namespace expanse

#endif  // EXPANSE_VMM_MAPPING_H_

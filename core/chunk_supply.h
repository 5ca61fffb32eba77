// Physical memory of one allocator: a chunk pool that also draws on the process-wide handle budget.

#ifndef EXPANSE_CORE_CHUNK_SUPPLY_H_
#define EXPANSE_CORE_CHUNK_SUPPLY_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/budget.h"
#include "vmm/chunk.h"
#include "vmm/chunk_pool.h"
#include "vmm/device.h"
#include "vmm/units.h"

namespace expanse {

// Sizes of chunks are multiples of one smallest size. Invariant: the budget has as many handles taken for it as the
// pool holds chunks, and one for each that is being created with the lock released. Guarded by the allocator's lock.
class ChunkSupply {
 public:
  // `device` and `budget` must outlive it.
  ChunkSupply(const Device& device, Bytes smallest, Bytes limit, Budget& budget);
  // Unmaps and releases everything. The reservations must still be there.
  ~ChunkSupply();
  ChunkSupply(const ChunkSupply&) = delete;
  ChunkSupply& operator=(const ChunkSupply&) = delete;

  [[nodiscard]] Bytes smallest() const { return smallest_; }
  [[nodiscard]] ChunkPool& pool() { return pool_; }
  [[nodiscard]] const ChunkPool& pool() const { return pool_; }
  // Chunks of the process's handle budget that nobody has.
  [[nodiscard]] uint64_t handles_left() const { return budget_.left(); }

  [[nodiscard]] Bytes spare() const { return pool_.bytes(ChunkState::kSpare); }
  // Spare chunks of one size.
  [[nodiscard]] uint64_t spare(Bytes size) const { return pool_.spare(size).count(); }
  // May be below what is held: then nothing is created until enough was released.
  void set_limit(Bytes limit) { pool_.set_limit(limit); }
  // How many slots limit and budget still allow in chunks of up to `largest` slots; the device may have fewer.
  [[nodiscard]] uint64_t Creatable(uint64_t largest) const;
  // How many of `count` slots, no more than Creatable, the device is likely to give in so many chunks. Where many are
  // wanted, or the device has refused since it last had enough, the driver is asked what is free. What it says is only
  // believed if the device then refuses to give all at once, in one chunk of that size: drivers may count too little as
  // free, but so nobody creates hundreds of chunks only to release them again. At most five driver calls.
  [[nodiscard]] uint64_t LikelyCreatable(uint64_t count, uint64_t chunks);
  // How many slots the device was likely to give when it refused last.
  [[nodiscard]] uint64_t left_at_refusal() const { return left_at_refusal_; }
  // Creates one spare chunk. One driver call. RESOURCE_EXHAUSTED names the limit or what the driver refused.
  [[nodiscard]] absl::Status Create(Bytes size);
  // Creation of a chunk with the lock released: Begin takes what limit and budget allow, or says what they do not; then
  // the caller creates it, and End takes it over as a spare one, or takes note of the failure. A chunk for which there
  // is no room any more is released again, by a driver call, and that is RESOURCE_EXHAUSTED.
  [[nodiscard]] absl::Status BeginCreation(Bytes size);
  absl::Status EndCreation(Bytes size, absl::StatusOr<Chunk> chunk);
  // Bytes that are being created that way.
  [[nodiscard]] Bytes in_creation() const { return in_creation_; }
  // What is held, and what is being created.
  [[nodiscard]] Bytes bytes_soon() const { return pool_.bytes() + in_creation_; }
  // Releases spare chunks, as large as fit, until `wanted` bytes are released or none is left: with kAtLeast a smallest
  // one more than fits, if that is needed. One driver call each.
  ChunkProgress Release(Bytes wanted, ReleaseBound bound = ReleaseBound::kAtLeast);
  // Releases a spare chunk of this size, of which there is one. One driver call; a chunk that the driver refuses is
  // quarantined.
  [[nodiscard]] absl::Status ReleaseOne(Bytes size);

  // Whether the device refused to create a chunk of the smallest size although limit and budget allowed it, and nothing
  // suggests by now that it would not refuse again: no chunk was created or released since, and no more than
  // kRefusalAge calls of AgeRefusal have passed.
  [[nodiscard]] bool refused() const { return refusal_age_ > 0; }
  // How often the device refused, ever.
  [[nodiscard]] uint64_t refusals() const { return refusals_; }
  // The device may have memory by now that it had not when it refused.
  void ForgetRefusal() { refusal_age_ = 0; }
  void AgeRefusal() {
    if (refusal_age_ > 0) --refusal_age_;
  }

  // Whether chunks were released since the last NoteSynchronized: drivers may count such memory as free only after
  // the context was synchronised.
  [[nodiscard]] bool released_since_sync() const { return releases() != releases_at_sync_; }
  // Other allocators of the process released memory of the device.
  void NoteReleasedByOthers() {
    ++releases_by_others_;
    ForgetRefusal();
  }
  // A number that grows with every release.
  [[nodiscard]] uint64_t releases() const { return pool_.released().count() + releases_by_others_; }
  // The context was synchronised, at a time when this was the number of releases.
  void NoteSynchronized(uint64_t releases) {
    releases_at_sync_ = releases;
    ForgetRefusal();
  }

  [[nodiscard]] absl::Status CheckInvariants() const { return pool_.CheckInvariants(); }

 private:
  // What the limit leaves.
  [[nodiscard]] Bytes Room() const { return pool_.bytes_left() - std::min(pool_.bytes_left(), in_creation_); }
  absl::Status CheckRoom(Bytes size) const;
  [[nodiscard]] absl::Status NoHandleLeft() const;
  void NoteRefused(uint64_t left);

  // More chunks than this are not created before the driver was asked what is free, at a twentieth of what they cost.
  static constexpr uint64_t kCreatedUnasked = 32;
  // A device that was full when asked is asked again after this many growths at the latest: another process may have
  // given memory back. Low enough to notice within a training step, high enough that asking costs little.
  static constexpr int kRefusalAge = 64;

  const Bytes smallest_;
  Budget& budget_;
  ChunkPool pool_;
  int refusal_age_ = 0;
  uint64_t refusals_ = 0;
  uint64_t left_at_refusal_ = 0;
  bool asks_first_ = false;
  Bytes in_creation_;
  uint64_t releases_by_others_ = 0;
  uint64_t releases_at_sync_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_CHUNK_SUPPLY_H_

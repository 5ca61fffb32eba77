// All the physical memory of one kind that we hold on one device.

#ifndef EXPANSE_VMM_CHUNK_POOL_H_
#define EXPANSE_VMM_CHUNK_POOL_H_

#include <cstdint>
#include <limits>
#include <ostream>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "vmm/chunk.h"
#include "vmm/device.h"
#include "vmm/units.h"

namespace expanse {

// Names a chunk of one pool. Small and dense, so that tables can be indexed by it. An id is used again after its chunk
// was released.
class ChunkId {
 public:
  constexpr ChunkId() = default;
  explicit constexpr ChunkId(uint32_t index) : index_(index) {}
  [[nodiscard]] constexpr uint32_t index() const { return index_; }
  [[nodiscard]] constexpr bool is_none() const { return index_ == kNone; }
  friend constexpr bool operator==(ChunkId a, ChunkId b) { return a.index_ == b.index_; }
  friend constexpr bool operator!=(ChunkId a, ChunkId b) { return a.index_ != b.index_; }
  friend std::ostream& operator<<(std::ostream& os, ChunkId id) { return os << "chunk " << id.index_; }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t index_ = kNone;
};

enum class ChunkState {
  kSpare,        // not mapped anywhere; the next growth takes it
  kMapped,       // mapped at one place
  kQuarantined,  // the driver refused to unmap or release it: counted, never used again
};

struct ChunkPoolOptions {
  ChunkKind kind;
  // The most bytes the pool may hold, quarantined ones included.
  Bytes limit{std::numeric_limits<uint64_t>::max()};
  // The most chunks it may hold. The resource manager has room for 524,288 handles in a process and warns at 100,000
  // (NVIDIA's open-gpu-kernel-modules).
  ChunkCount max_chunks{400000};
};

// How many chunks and bytes an operation dealt with, and OK or what stopped it.
struct ChunkProgress {
  ChunkCount chunks;
  Bytes bytes;
  absl::Status status;
};

// Chunks are released whole, so not just so many bytes can be: at least those, or at most.
enum class ReleaseBound { kAtLeast, kAtMost };

// Owns every chunk from creation to release and knows its state and, while it is mapped, its address. Moving memory is
// UnmapChunks, which makes chunks spare, and MapTransaction, which takes spare ones (both in mapping.h); the pool
// itself only creates and releases. Chunks may have different sizes; spare ones are kept by size.
//
// Invariants: bytes and counts are the sums over the chunks; exactly the spare chunks are on the spare lists; exactly
// the mapped chunks, and the quarantined ones that the driver would not unmap, have an address; held bytes and chunks
// are within the limits as they were when the last chunk was created.
//
// Externally synchronised: whoever owns the pool guards it with the lock that guards the tables of its chunks.
class ChunkPool {
 public:
  // The device must outlive the pool.
  ChunkPool(const Device& device, const ChunkPoolOptions& options);
  // Unmaps what is still mapped and releases everything; what the driver refuses stays with it. The reservations that
  // chunks are mapped in must still be there.
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  // Creates `count` spare chunks of `size` bytes each, a multiple of the device's granularity, or none: after a failure
  // those that this call created are released again. One driver call a chunk.
  // RESOURCE_EXHAUSTED names the limit or what the driver refused; the limits are checked before any driver call.
  [[nodiscard]] absl::Status Create(ChunkCount count, Bytes size);
  // Takes over a chunk of the pool's device and kind that the caller created: it is spare. For creation without the
  // lock that guards the pool; the caller has seen to the limits. O(1).
  void Adopt(Chunk chunk);
  // Releases a spare chunk. One driver call; after a refusal it is quarantined.
  [[nodiscard]] absl::Status Release(ChunkId id);
  // Releases spare chunks until `wanted` bytes are released, no more fit or none is left: the largest that fit, and
  // with kAtLeast the smallest that cover the rest. Running out of spare chunks is no error. Goes on after a refusal:
  // that chunk is quarantined and the first refusal is reported. One driver call a chunk.
  [[nodiscard]] ChunkProgress ReleaseSpare(Bytes wanted, ReleaseBound bound = ReleaseBound::kAtLeast);

  // A spare chunk of exactly this size, the one that became spare last, or none. It stays spare. O(1).
  [[nodiscard]] ChunkId FindSpare(Bytes size) const;
  // Records that a spare chunk was mapped, that a mapped one was unmapped, or that one must never be used again.
  // For mapping.cc and for callers that found a mapping they cannot trust. O(1), quarantine of a spare one O(spare).
  void MarkMapped(ChunkId id, DeviceAddress address);
  void MarkSpare(ChunkId id);
  void Quarantine(ChunkId id);

  [[nodiscard]] ChunkState state(ChunkId id) const { return slots_[id.index()].state; }
  [[nodiscard]] Bytes size(ChunkId id) const { return slots_[id.index()].chunk.size(); }
  [[nodiscard]] abi::MemHandle handle(ChunkId id) const { return slots_[id.index()].chunk.handle(); }
  // Where the chunk is mapped; of size zero if it is not.
  [[nodiscard]] AddressRange range(ChunkId id) const;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] const ChunkKind& kind() const { return options_.kind; }
  [[nodiscard]] Bytes limit() const { return options_.limit; }
  // May be below what is held: then nothing is created until enough was released.
  void set_limit(Bytes limit) { options_.limit = limit; }
  // What may still be created.
  [[nodiscard]] Bytes bytes_left() const;
  [[nodiscard]] ChunkCount chunks_left() const;

  // Everything the pool holds now, and the part in one state.
  [[nodiscard]] ChunkCount chunks() const;
  [[nodiscard]] Bytes bytes() const;
  [[nodiscard]] ChunkCount chunks(ChunkState state) const { return totals_[Index(state)].chunks; }
  [[nodiscard]] Bytes bytes(ChunkState state) const { return totals_[Index(state)].bytes; }
  [[nodiscard]] ChunkCount spare(Bytes size) const;
  // Since the pool was made. Chunks of a Create that failed count in both.
  [[nodiscard]] ChunkCount created() const { return created_; }
  [[nodiscard]] ChunkCount released() const { return released_; }

  // OK, or INTERNAL naming the first inconsistency. O(chunks).
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  struct Slot {
    Chunk chunk;  // empty: the slot is unused
    ChunkState state = ChunkState::kSpare;
    DeviceAddress address;  // null: not mapped
  };
  struct Total {
    ChunkCount chunks;
    Bytes bytes;
  };
  static constexpr int kStates = 3;
  static int Index(ChunkState state) { return static_cast<int>(state); }

  absl::Status CheckRoom(ChunkCount count, Bytes size) const;
  absl::Status CreateOne(Bytes size);
  void SetState(ChunkId id, ChunkState state);
  // Adds a chunk in its state to the totals and lists, and takes it out again.
  void Count(ChunkId id);
  void Uncount(ChunkId id);

  const Device& device_;
  ChunkPoolOptions options_;
  std::vector<Slot> slots_;
  std::vector<ChunkId> unused_slots_;
  absl::flat_hash_map<Bytes, std::vector<ChunkId>> spare_;  // by chunk size, the latest last
  Total totals_[kStates];
  ChunkCount created_;
  ChunkCount released_;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_CHUNK_POOL_H_

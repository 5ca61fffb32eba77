// The state of an allocator at one moment, as plain data, and the texts it can be written as.

#ifndef EXPANSE_CORE_SNAPSHOT_H_
#define EXPANSE_CORE_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/stats.h"
#include "vmm/units.h"

namespace expanse {

enum class SnapshotBlockState { kFree, kLive, kPending, kQuarantined };

struct SnapshotBlock {
  DeviceAddress address;
  Bytes size;
  Bytes requested;  // 0 unless live or pending
  SnapshotBlockState state = SnapshotBlockState::kFree;
};

// A chunk behind addresses. Chunks keep their number while they exist, wherever they are moved.
struct SnapshotChunk {
  uint32_t number = 0;
  DeviceAddress address;
  Bytes size;
  bool idle = false;  // wholly free, and not pinned
};

struct SnapshotSegment {
  DeviceAddress address;
  Bytes size;
  uint32_t stream = 0;  // a SnapshotStream's number
  uint64_t pool = 0;    // a SnapshotPool's number
  int size_class = 0;
  std::vector<SnapshotBlock> blocks;  // by address; what lies between them has no memory behind it
  std::vector<SnapshotChunk> chunks;  // by address
};

struct SnapshotStream {
  uint32_t number = 0;  // as the allocator met them; 0 is the legacy default stream; never given twice
  uint64_t handle = 0;
  uint64_t thread = 0;     // of a per-thread default stream; 0 for any other
  bool destroyed = false;  // then the handle may name another stream
};

struct SnapshotPool {
  uint64_t number = 0;  // 0 is the default pool
  std::string name;
  std::optional<Bytes> limit;
  bool retired = false;
};

enum class SnapshotEventKind : uint8_t {
  kAllocate,
  kFree,         // the block is free memory again at once
  kFreePending,  // another stream may still use it
  kSettle,       // a pending block is free memory again
  kUse,          // on another stream
  kMark,
  kOutOfMemory,
  kMap,    // chunks were put behind addresses
  kUnmap,  // and taken away from there
};

// What the recorder has, where it is on.
struct SnapshotEvent {
  SnapshotEventKind kind = SnapshotEventKind::kAllocate;
  DeviceAddress address;  // null for kMark and kOutOfMemory
  Bytes bytes;            // asked for; kMap and kUnmap: of the range
  Bytes device_free;      // kOutOfMemory; 0 where the device did not say
  uint32_t stream = 0;    // the block's own
  uint32_t other = 0;     // kFree and kFreePending: of its last use; kUse: the one that uses it
  uint64_t time_us = 0;   // since 1970; of that event or some before it; never decreasing
  std::string label;      // kMark
};

struct Snapshot {
  // Of the JSON text: the first number changes when a reader of the old text would be wrong about the new one.
  static constexpr const char* kFormat = "expanse-snapshot-1.0";

  int device = 0;
  Bytes device_memory;
  std::optional<Bytes> limit;
  uint64_t time_us = 0;                   // since 1970
  uint64_t spare_chunks = 0;              // held, and mapped nowhere
  std::vector<SnapshotStream> streams;    // by number
  std::vector<SnapshotPool> pools;        // by number
  std::vector<SnapshotSegment> segments;  // by address
  std::vector<SnapshotEvent> events;      // the latest ones, oldest first
  Stats stats;
};

// JSON as docs/snapshot.schema.json and docs/statistics.md describe it. O(size of the snapshot).
[[nodiscard]] std::string ToJson(const Snapshot& snapshot);

// The pickle that torch.cuda.memory._dump_snapshot would write of this memory, so that what reads those files reads it:
// pytorch.org/memory_viz, torch/cuda/_memory_viz.py, and `expanse replay`. docs/statistics.md says what becomes of what
// PyTorch has no word for. O(size of the snapshot).
[[nodiscard]] std::string ToPyTorchPickle(const Snapshot& snapshot);

}  // namespace expanse

#endif  // EXPANSE_CORE_SNAPSHOT_H_

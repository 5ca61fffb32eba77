// The allocator behind the public interface: all its parts under one lock.

#ifndef EXPANSE_CORE_ALLOCATOR_IMPL_H_
#define EXPANSE_CORE_ALLOCATOR_IMPL_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/address_space.h"
#include "core/age_log.h"
#include "core/allocator.h"
#include "core/block.h"
#include "core/block_table.h"
#include "core/chunk_supply.h"
#include "core/climb.h"
#include "core/completion.h"
#include "core/figure_counter.h"
#include "core/fork_guard.h"
#include "core/grower.h"
#include "core/idle_queue.h"
#include "core/mapping_hooks.h"
#include "core/oom_callbacks.h"
#include "core/peers.h"
#include "core/pending_queue.h"
#include "core/pin_table.h"
#include "core/pool_registry.h"
#include "core/prewarm.h"
#include "core/recorder.h"
#include "core/shortage.h"
#include "core/soft_limit.h"
#include "core/stall_counter.h"
#include "core/stream_registry.h"
#include "vmm/device.h"
#include "vmm/event.h"
#include "vmm/mutex.h"

namespace expanse {

// `mu_` guards everything but the device, which is immutable, the fork guard, what has a lock of its own (`callbacks_`
// and `peer_`), and `next_kept_`. It is held across driver calls, but never while waiting for queued work, calling the
// program or asking other allocators: so no thread ever holds the locks of two allocators.
class Allocator::Impl {
 public:
  // `options` are valid and complete: see Allocator::Create.
  Impl(std::unique_ptr<Device> device, const AllocatorOptions& options, Bytes chunk_size);
  // Gives everything back. Nothing may be queued any more that uses the memory: see Quiesce.
  ~Impl() = default;

  // Waits, asking twice, until nothing is queued in the context. True if no work can touch memory of the context any
  // more: it is over, or an error has ended the context or the driver. Unmapping takes effect at once, whatever is
  // queued, so after false nothing may be unmapped.
  [[nodiscard]] bool Quiesce();
  // Nothing may be unmapped any more: from now on nobody asks this one for memory, and it calls nobody. Blocks while it
  // is being asked.
  void Abandon();
  // Keeps what must not be given back reachable from a list of the process, so that a leak checker finds real leaks
  // only. Takes no lock: a forked child may call it.
  static void KeepForever(std::unique_ptr<Impl> impl);

  [[nodiscard]] absl::Status ReserveAddresses();
  [[nodiscard]] bool forked() const { return fork_guard_.forked(); }

  absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream, PoolId pool);
  // Without a stream: the one that the block was allocated for.
  absl::Status Free(DeviceAddress address, std::optional<StreamHandle> stream);
  absl::Status RecordUse(DeviceAddress address, StreamHandle stream);
  absl::Status OnStreamDestroyed(StreamHandle stream);
  absl::StatusOr<Bytes> Trim(Bytes target, TrimMode mode);
  absl::StatusOr<Bytes> TrimUnused();
  absl::Status Prewarm(Bytes target, PrewarmMode mode);
  absl::Status WaitForPrewarm();
  // Ends the job and its thread. Nothing may ask for another one any more.
  void StopPrewarm();
  absl::StatusOr<PoolId> CreatePool(const PoolOptions& options);
  absl::StatusOr<PoolStats> GetPoolStats(PoolId id) const;
  absl::StatusOr<Bytes> TrimPool(PoolId id, Bytes target);
  absl::Status RetirePool(PoolId id);
  absl::Status Pin(AddressRange range);
  absl::Status Unpin(AddressRange range);
  absl::StatusOr<std::vector<HandleSpan>> HandlesSpanning(AddressRange range) const;
  absl::StatusOr<MappingCallbacksId> AddMappingCallbacks(MappingCallbacks callbacks);
  absl::Status RemoveMappingCallbacks(MappingCallbacksId id);
  // Everything will be unmapped now. Callbacks are told, and nothing from there on.
  void TellOfDestruction();
  // Up to `wanted` bytes of idle memory, for another allocator that starves; returns how much.
  Bytes GiveBackToOthers(Bytes wanted);
  absl::Status SetLimit(std::optional<Bytes> limit);
  absl::Status SetSoftLimit(std::optional<Bytes> soft_limit, SoftLimitCallback callback);
  OomCallbacks& callbacks() { return callbacks_; }
  [[nodiscard]] const Device& device() const { return *device_; }
  Stats GetStats() const;
  HeapStats GetStreamStats(StreamHandle stream) const;
  Snapshot TakeSnapshot() const;
  absl::Status Mark(std::string_view label);
  absl::StatusOr<std::string> GetRecording() const;
  DriverCallCounts GetDriverCalls() const { return device_->calls(); }
  void ResetPeaks();
  absl::Status CheckInvariants() const;

 private:
  // Memory freed since a stream's last event can be moved only after waiting for all that the stream was given so far.
  // So while memory is short, a free closes the stream's epoch once this many chunks fell idle in it: then older memory
  // is known to be complete when it is wanted. 128 MiB at 2 MiB a chunk: small against what a growth needs under
  // pressure, so that little is held back, and large enough that an event is recorded once in many frees.
  static constexpr uint64_t kIdleChunksPerEpoch = 64;
  // Each time that memory had to be moved or waited for pays for this many such events, at three driver calls each: a
  // workload that has settled makes none. On llama70b at 1.005 times its peak, 4 raised the calls of the fourth step
  // from 644 to 821, 1 to 688.
  static constexpr int kEarlyClosesPerShortage = 1;

  struct Request {
    Bytes asked;
    Bytes rounded;
    StreamKey stream;
    PoolState* pool;
  };
  // Most blocks that others use at all have one such user.
  using Users = absl::InlinedVector<std::shared_ptr<StreamState>, 2>;
  // Queued work that holds memory back, and the number of the free since which it does.
  struct HeldBack {
    Ticket ticket;
    uint64_t number = 0;
  };

  // --- hot_path.cc: requests that memory at hand serves, and frees
  // A block that memory at hand holds, taken; null if there is none. No driver call.
  Block* TakeAtHand(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StreamHeap& HeapFor(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int ClassOf(const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A taken block is live from now on.
  DeviceAddress HandOut(Block* block, Bytes asked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A used or pending block that is not live is free memory from now on.
  void ReleaseBlock(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- allocator_impl.cc: the books
  // INVALID_ARGUMENT for nothing, and for more than the device has.
  absl::Status NoSuchSize(Bytes size) const;
  void SettlePending(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes pending blocks free memory that all their streams are done with; how many. O(pending blocks).
  size_t SettleComplete(CompletionCheck& completion) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> FindLive(DeviceAddress address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // INVALID_ARGUMENT that says what is at an address instead of a live block.
  absl::Status NotLive(DeviceAddress address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Null if the address is in none. O(segments).
  Segment* FindSegment(DeviceAddress address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the slabs of segments back in which nothing is left: those of destroyed streams and retired pools, or all.
  void DropEmptySegments(bool of_live_streams) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- streams.cc
  // The stream that a program names as a user of memory. It may be known only from that, so it is identified now: by
  // the time an event is recorded, its handle may name another one. One driver call the first time.
  const std::shared_ptr<StreamState>& Named(StreamHandle handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Frees a block that is no longer live and that other streams than its own use: `last`, unless it is the own one, and
  // those that RecordUse named. It is pending unless they are known to be done.
  void FreeShared(Block* block, const std::shared_ptr<StreamState>& last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteFree(const Block& block, uint32_t last_stream, SnapshotEventKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- figures.cc
  Stats CurrentStats() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After anything but a request or a free that memory at hand served, which change no more than UpdateIdle sees.
  void UpdateFigures() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UpdateIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- pools.cc
  // Gives back what retired pools no longer use, as far as the device is done with it.
  void ReclaimRetiredPools() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- deterministic.cc
  absl::Status ReserveForPool(const PoolState& pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddFixedSegment(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits, with the lock released meanwhile, until nobody uses any more what lies where the request will be placed.
  absl::Status ClearPlace(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The place is clear and not all mapped.
  absl::StatusOr<Block*> GrowFixed(const Request& request, CompletionCheck& completion)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- pins.cc
  // The segment of a range that lies in one live block. O(segments + blocks).
  absl::StatusOr<const Segment*> FindLiveRange(AddressRange range) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- reclaim.cc: what happens when no free block fits
  // A crossing of the soft limit is left in `warning`, to be told when the lock is released.
  absl::StatusOr<DeviceAddress> Serve(Bytes size, StreamKey key, PoolId pool, std::optional<SoftLimitWarning>& warning);
  SegmentSet& SetFor(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> AllocateSlowly(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> TryOnce(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Block*> GrowSet(SegmentSet& set, const Request& request, CompletionCheck& completion)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Block* TakeFromOtherClass(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // In slots, that may be created for the request.
  uint64_t LargestChunkFor(const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddSegment(SegmentSet& set, const Request& request, CompletionCheck& completion)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Segment* AddSegmentAt(const Slab& slab, SegmentSet& set, const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The rungs that release the lock. True: memory may have become free meanwhile; false: nothing was done.
  bool AskOtherAllocators(Climb& climb) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AskCallbacks(const Request& request, const absl::Status& failure, Climb& climb)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CouldEverFit(const Request& request, const Climb& climb) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Shortage DescribeShortage(const Request& request, const absl::Status& reason, const Climb& climb)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- waiting.cc
  // Waits until something more is complete, in `pool` unless it is null. False if nothing is left to wait for that may
  // help.
  absl::StatusOr<bool> WaitForMore(const PoolState* pool, Climb& climb) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<HeldBack> OldestIncomplete(const PoolState* pool) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Both release the lock while they wait.
  absl::Status WaitFor(const Ticket& ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status WaitForContext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- give_back.cc
  // Gives idle memory back until at most `target` bytes are held, without waiting. What was released.
  ChunkProgress TrimTo(Bytes target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Which idle chunks are given back.
  struct Idle {
    const PoolState* pool = nullptr;             // this pool's, or all if it is null
    uint64_t freed_until = ChunkMover::kLatest;  // those that fell idle in this free or earlier
  };
  // Gives up to `wanted` bytes of idle chunks back that are mapped; adds them to `trimmed`.
  void GiveBackIdle(Bytes wanted, const Idle& idle, ChunkProgress& trimmed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether memory may have become old, with trim_after.
  bool NoteAge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  ChunkProgress GiveBackOld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- prewarm.cc
  // RESOURCE_EXHAUSTED if the process may have no more threads; then there is no job.
  absl::Status StartPrewarmThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs the job to its end. Releases the lock while it is inside the driver, or calls the program.
  void RunPrewarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status PrewarmOne(Bytes size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t LargestPrewarmed(Bytes target) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits until there is no job, and says how the last ended.
  absl::Status PrewarmEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits while a job runs and what it has created by now is not enough for the request.
  void AwaitPrewarmed(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<Device> device_;
  const AllocatorOptions options_;
  const ForkGuard fork_guard_;
  mutable Mutex mu_;
  // In this order: chunks are unmapped before their addresses are given back, and the segments go first of all.
  AddressSpace addresses_ ABSL_GUARDED_BY(mu_);
  // Those of deterministic pools.
  absl::flat_hash_map<PoolId, std::unique_ptr<AddressSpace>> pool_addresses_ ABSL_GUARDED_BY(mu_);
  ChunkSupply supply_ ABSL_GUARDED_BY(mu_);
  EventPool events_ ABSL_GUARDED_BY(mu_);
  BlockArena arena_ ABSL_GUARDED_BY(mu_);
  IdleQueue idle_queue_ ABSL_GUARDED_BY(mu_);
  PinTable pins_ ABSL_GUARDED_BY(mu_);
  MappingHooks hooks_ ABSL_GUARDED_BY(mu_);
  Recorder recorder_ ABSL_GUARDED_BY(mu_);
  ChunkMover mover_ ABSL_GUARDED_BY(mu_);
  Grower grower_ ABSL_GUARDED_BY(mu_);
  StreamRegistry streams_ ABSL_GUARDED_BY(mu_);
  PoolRegistry pools_ ABSL_GUARDED_BY(mu_);
  PendingQueue pending_queue_ ABSL_GUARDED_BY(mu_);
  // Every used block by its begin.
  BlockTable live_ ABSL_GUARDED_BY(mu_);
  // Other streams that RecordUse named, each once, of the live blocks that have some.
  absl::flat_hash_map<const Block*, Users> users_ ABSL_GUARDED_BY(mu_);
  int early_closes_left_ ABSL_GUARDED_BY(mu_) = 0;

  FigureCounter live_bytes_ ABSL_GUARDED_BY(mu_);
  FigureCounter allocated_ ABSL_GUARDED_BY(mu_);
  FigureCounter pending_ ABSL_GUARDED_BY(mu_);
  FigureCounter reserved_ ABSL_GUARDED_BY(mu_);
  FigureCounter idle_ ABSL_GUARDED_BY(mu_);
  FigureCounter pinned_ ABSL_GUARDED_BY(mu_);
  FigureCounter prewarmed_ ABSL_GUARDED_BY(mu_);
  FigureCounter address_space_ ABSL_GUARDED_BY(mu_);
  StallCounter gpu_stalls_ ABSL_GUARDED_BY(mu_);
  StallCounter lock_stalls_ ABSL_GUARDED_BY(mu_);
  StallCounter prewarm_stalls_ ABSL_GUARDED_BY(mu_);
  // The counters of Stats that nobody else keeps.
  Stats counts_ ABSL_GUARDED_BY(mu_);
  std::optional<Bytes> limit_ ABSL_GUARDED_BY(mu_);  // as the program set it
  SoftLimit soft_limit_ ABSL_GUARDED_BY(mu_);
  std::optional<AgeLog> age_log_ ABSL_GUARDED_BY(mu_);  // none: memory may be idle for ever
  PrewarmJob prewarm_ ABSL_GUARDED_BY(mu_);
  CondVar prewarm_progress_;  // with mu_: a chunk more, or the end of the job
  OomCallbacks callbacks_;
  // The rest of the list of KeepForever.
  Impl* next_kept_ = nullptr;
  // Last: others may ask as soon as it is made and until it is gone.
  std::optional<const Peer> peer_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_ALLOCATOR_IMPL_H_

// The public C++ interface: a stream-ordered allocator of device memory over one huge address reservation.
//
//   auto driver = expanse::LoadCudaDriver();               // or a simulator's driver()
//   auto allocator = expanse::Allocator::Create(*driver, {});
//   auto block = (*allocator)->Allocate(expanse::MiB(64), stream);
//   ... launch kernels on `stream` with block->ptr() ...
//   (*allocator)->Free(*block);                            // ordered after what `stream` was given so far
//
// Thread-safety: every function may be called from any thread at any time.
// Host memory: running out of host memory is fatal.
// Synchronisation: a request that memory at hand serves makes no driver call. Otherwise it makes driver calls, which
// may block inside the driver; only when memory is short does it wait for queued work, and then for no more than
// the work that holds what is missing. All functions share one lock, which is held over driver calls: so each of them,
// Free too, may wait until another thread's growth or trim has come back from the driver, but never for queued work.
// Callbacks of the program must not throw.

#ifndef EXPANSE_CORE_ALLOCATOR_H_
#define EXPANSE_CORE_ALLOCATOR_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/handle_span.h"
#include "core/mapping_callbacks.h"
#include "core/options.h"
#include "core/pool.h"
#include "core/shortage.h"
#include "core/snapshot.h"
#include "core/stats.h"
#include "vmm/counting_driver.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse {

// Every block begins at a multiple of this and is rounded up to a multiple of it, as PyTorch's are.
inline constexpr Bytes kBlockAlignment = Bytes(512);

class Allocator {
 public:
  // Retains the device's primary context and reserves addresses; no physical memory is taken.
  //
  // Errors: INVALID_ARGUMENT naming the option and what was expected; UNIMPLEMENTED where the device has no virtual
  // memory management; RESOURCE_EXHAUSTED where not even one device memory of addresses could be reserved.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Allocator>> Create(const Driver& driver,
                                                                         const AllocatorOptions& options);

  // Waits for queued work that may use this memory, gives everything back, live blocks included, and releases the
  // context. Never throws and never ends the process. What the driver refuses to take back stays with it; if it refuses
  // to wait, everything does.
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Memory for `size` bytes, to be used by work on `stream`, aligned to kBlockAlignment. Contents are undefined.
  // A size of 0 is INVALID_ARGUMENT, as is one larger than the device could ever hold, which needs no driver call.
  // RESOURCE_EXHAUSTED: the message says what was asked, what is live, cached and free on the device, the largest free
  // range, and why reclaim could not help. Nothing is lost by a failure.
  // O(log free blocks) where memory at hand fits; otherwise driver calls in proportion to the chunks that are missing.
  [[nodiscard]] absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream);

  // The same, in a pool. A request that other pools' idle memory can serve is served with it. Where the pool's limit is
  // in the way the message says so.
  // NOT_FOUND for an unknown pool, FAILED_PRECONDITION for a retired one.
  [[nodiscard]] absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream, PoolId pool);

  // Frees a block, of whatever pool; work already queued on its own stream may still use it. `address` is what Allocate
  // returned. INVALID_ARGUMENT, and nothing changes, for any other address: null, foreign, interior or already freed.
  // Never waits for queued work. O(log free blocks and chunks of the block). No driver call unless RecordUse named
  // other streams, or memory was short lately: then an event is recorded now and then.
  absl::Status Free(DeviceAddress address);

  // The same, for a block whose last use was queued on `stream`, which may differ from the one it was allocated for.
  // If it differs, the memory is reused only once the work queued there so far is complete: one event is recorded.
  absl::Status Free(DeviceAddress address, StreamHandle stream);

  // Tells that work on `stream`, another one than the block was allocated for, uses the block. Its memory is then not
  // reused before the work queued on `stream` at the time of Free is complete. Makes no driver call.
  absl::Status RecordUse(DeviceAddress address, StreamHandle stream);

  // Must be called before the program destroys a stream that it allocated for, freed on or recorded, after its last
  // work was queued: the driver may give the next stream the same handle. Blocks allocated for it stay valid. OK for a
  // stream that is not known. Never waits for queued work; one event is recorded. If the driver refuses that, its error
  // is returned, and all the same the stream is forgotten: its memory is moved only after the whole context was
  // synchronised. A thread should call it with StreamHandle::PerThread() before it ends if it used its per-thread
  // default stream: no other thread can name that one, and what is kept for it would stay.
  //
  // What happens without it: a new stream with the old handle is served memory that the old one freed, and nothing
  // orders the two. Allocate asks the driver nothing, so it cannot tell. Where the driver has cuStreamGetId (CUDA 12),
  // memory is at least not moved elsewhere under the old stream's work: the next event for the handle finds that out,
  // and what was freed by then waits until the context was synchronised. Older drivers do not even tell that.
  absl::Status OnStreamDestroyed(StreamHandle stream);

  // Gives idle memory back to the device until at most `target` bytes are reserved, or nothing more is idle: first what
  // is mapped nowhere, then the least recently freed. With kNoWait it never waits for queued work: memory that it may
  // still use is left. With kWait the work that holds memory back is waited for, oldest first and with no lock held,
  // until the target is reached or there is none left; and, for memory of a destroyed stream whose last event could not
  // be recorded, the whole context. What other threads free meanwhile is waited for too, but the end of that is looked
  // for a few times only, so that it comes back. Such waits count as `waits`. Returns the bytes that this call
  // released, or what the driver refused; what was released by then stays released. One driver call a chunk, one a run
  // of neighbours, and an event for each stream that was not known to be done.
  [[nodiscard]] absl::StatusOr<Bytes> Trim(Bytes target, TrimMode mode = TrimMode::kNoWait);

  // With AllocatorOptions::trim_after, gives back what nothing has needed for that long, as Trim with kNoWait gives
  // memory back, and returns the bytes released or what the driver refused. Memory is needed when a request is served
  // with any byte of its chunk. What another stream used last counts from when that stream was found to be done.
  //
  // Allocate and Free look as well, at one reading of the clock each, and pass over what the driver refuses, which the
  // next look finds again. They give memory back at most once in an eighth of `trim_after`: never earlier than it,
  // and in the first call after five quarters of it unless the device is not known to be done with the memory by then.
  // Nothing runs by itself: a program that may go without either call for long calls this instead, as from a timer.
  // FAILED_PRECONDITION without `trim_after`. Never waits.
  [[nodiscard]] absl::StatusOr<Bytes> TrimUnused();

  // Creates memory ahead, until at least `target` bytes are reserved: the reverse of Trim. It is mapped nowhere, counts
  // as idle, and serves the next growths of whatever stream and pool; what they do not need is given back like other
  // idle memory. docs/tuning.md says when that is worth a call.
  //
  // No lock is held over the driver calls that create, one a chunk: other threads are served from memory at hand
  // meanwhile. A request that needs more waits until that was created ahead or cannot be, and is counted in
  // `prewarm_stalls`; it does not while the soft limit's callback runs. Limits and the process's handle budget hold.
  //
  // With kBackground a thread of the allocator does it and this returns at once. One job runs at a time: a call during
  // another's job raises its target. INVALID_ARGUMENT, and nothing is created, for more than the limit; with
  // kBlocking else what stopped the job, RESOURCE_EXHAUSTED if device, limit or budget have no more. What was created
  // by then is kept.
  absl::Status Prewarm(Bytes target, PrewarmMode mode = PrewarmMode::kBlocking);
  // Blocks until no job runs, and says how the last ended. FAILED_PRECONDITION for a soft limit's callback that the job
  // itself calls. Destroying the allocator ends a job after the chunk that is being created.
  [[nodiscard]] absl::Status WaitForPrewarm();

  // Makes a pool. INVALID_ARGUMENT for a limit that is smaller than a chunk, or a name that is no UTF-8. Makes no
  // driver call, as addresses and memory are taken when they are asked for, unless the pool is deterministic: the
  // addresses that it may ever need are reserved now, which is RESOURCE_EXHAUSTED where they are not to be had. O(1).
  [[nodiscard]] absl::StatusOr<PoolId> CreatePool(const PoolOptions& options);

  // NOT_FOUND for an unknown pool, FAILED_PRECONDITION for a retired one. O(1) but for a lock.
  [[nodiscard]] absl::StatusOr<PoolStats> GetPoolStats(PoolId pool) const;

  // Gives memory that is idle in one pool back to the device until at most `target` bytes are mapped for the pool, or
  // nothing more is idle there. Otherwise like Trim. The errors of GetPoolStats.
  [[nodiscard]] absl::StatusOr<Bytes> TrimPool(PoolId pool, Bytes target);

  // Ends a pool: it serves no request any more. Its live blocks stay valid until they are freed. As they are, chunks
  // go back to what all pools share, and addresses to what segments are made of, each as soon as queued work is known
  // to be done with it: that is asked here, when one of its blocks is freed and whenever no free block fits a request,
  // and costs driver calls. O(its idle chunks, and all segments).
  // The errors of GetPoolStats; INVALID_ARGUMENT for the default pool. Never waits for queued work.
  absl::Status RetirePool(PoolId pool);

  // From now on the allocator holds at most `limit`, or whatever the device gives. If more is held, idle memory is
  // given back as in Trim, and nothing is created until enough was given back. INVALID_ARGUMENT, and nothing changes,
  // for less than a chunk; else what the driver refused to take back: the limit holds all the same. Never waits for
  // queued work; driver calls only to give memory back, as Trim makes them.
  absl::Status SetLimit(std::optional<Bytes> limit);
  // Has `callback` called when the allocator holds more than `soft_limit`: now if it does already, and then each time
  // that it comes to. No limit: no more warnings. INVALID_ARGUMENT for a limit without a callback. After a change, the
  // earlier callback may still be running. It is called by this function, or by the thread whose call creates memory,
  // with no lock held. No driver call. O(1).
  absl::Status SetSoftLimit(std::optional<Bytes> soft_limit, SoftLimitCallback callback);

  // Has `callback` called before a request waits for queued work or fails; shortage.h says how. It is called in the
  // order of adding, after idle memory of other allocators of the process was given back, at most a few times a
  // request. INVALID_ARGUMENT if there is nothing to call.
  [[nodiscard]] absl::StatusOr<CallbackId> AddOutOfMemoryCallback(OutOfMemoryCallback callback);
  // Afterwards it is not called any more, nor does any other thread run it: blocks until those that do are back. A
  // callback may remove itself, but two that remove each other on two threads wait for each other for ever. NOT_FOUND
  // for an id that was removed or never given out.
  absl::Status RemoveOutOfMemoryCallback(CallbackId id);

  // Keeps the chunks behind [address, address + length) where they are, for as long as something outside refers to the
  // memory there, such as a registration with NCCL or RDMA. They are not unmapped, given back or given to another pool
  // or stream until Unpin, even if the block is freed or its pool retired meanwhile; free parts of them serve only
  // requests of the same pool and stream. The range must lie in one live block, else INVALID_ARGUMENT. A range may be
  // pinned more than once, and pinned ranges may overlap: a chunk stays while any range is pinned that touches it.
  // Never waits, no driver call. O(blocks of the segment + chunks).
  absl::Status Pin(DeviceAddress address, Bytes length);
  // Takes back one Pin of exactly this range, whether or not its block is still live. NOT_FOUND, naming the address and
  // changing nothing, if there is none. Never waits; no driver call unless a pool was retired. O(chunks and segments).
  absl::Status Unpin(DeviceAddress address, Bytes length);

  // The driver handles behind [address, address + length), which must lie in one live block, else INVALID_ARGUMENT:
  // the parts of the range by chunk, in address order, which cover it without gaps. They stay what they are until the
  // block is freed, or unpinned if that is later. O(blocks of the segment + chunks).
  [[nodiscard]] absl::StatusOr<std::vector<HandleSpan>> HandlesSpanning(DeviceAddress address, Bytes length) const;

  // Has them called when memory is unmapped and mapped; mapping_callbacks.h says how. INVALID_ARGUMENT if both are
  // empty. Memory that is mapped by now is not reported. Neither this nor RemoveMappingCallbacks may be called by such
  // a callback, which runs under the lock. Never waits, no driver call; O(callbacks), both.
  [[nodiscard]] absl::StatusOr<MappingCallbacksId> AddMappingCallbacks(MappingCallbacks callbacks);
  // Afterwards they are not called any more, nor are they running. NOT_FOUND for an id that was removed or never given.
  absl::Status RemoveMappingCallbacks(MappingCallbacksId id);

  // O(1) but for a lock.
  [[nodiscard]] Stats GetStats() const;
  // What the stream holds in all pools, as the calling thread means it; all zero for one that is not known. O(blocks
  // and chunks of the stream), under the lock.
  [[nodiscard]] HeapStats GetStreamStats(StreamHandle stream) const;
  // Calls that this allocator made of each entry point of the driver, and the host time inside them. Takes no lock.
  [[nodiscard]] DriverCallCounts GetDriverCalls() const;
  // All that the allocator holds, at one moment: segments, blocks, chunks, streams, pools, figures and, where the
  // recorder is on, its events. No driver call. O(everything), under the lock. Empty in a forked child.
  [[nodiscard]] Snapshot TakeSnapshot() const;

  // With AllocatorOptions::record_events the allocator remembers what it was asked for lately, at little cost to it.

  // Names this moment in the recording, as "step3". INVALID_ARGUMENT for a label that a trace cannot hold: it takes 1
  // to 4096 bytes of UTF-8 without comma, '#', control characters and outer blanks. FAILED_PRECONDITION if nothing is
  // recorded.
  absl::Status Mark(std::string_view label);
  // The recording as a trace (docs/trace_format.md) that can be replayed: blocks that were live when the oldest event
  // happened are allocated first. FAILED_PRECONDITION if nothing is recorded. O(events and live blocks), under the
  // lock.
  [[nodiscard]] absl::StatusOr<std::string> GetRecording() const;

  // Sets the peak of every figure to its current value.
  void ResetPeaks();

  // OK, or INTERNAL naming the first inconsistency. O(everything); for tests.
  [[nodiscard]] absl::Status CheckInvariants() const;

 private:
  class Impl;
  explicit Allocator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_ALLOCATOR_H_

// A program that calls every function of an allocator at random, uses what it gets, and mistrusts the allocator.

#ifndef EXPANSE_TESTS_STRESS_RANDOM_OPERATIONS_H_
#define EXPANSE_TESTS_STRESS_RANDOM_OPERATIONS_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/allocator.h"
#include "tests/stress/choices.h"
#include "tests/stress/mapping_watch.h"
#include "tests/stress/random_shape.h"
#include "tests/stress/stress_device.h"
#include "vmm/units.h"

namespace expanse::stress {

// A correct program as far as streams go: all uses of a block are ordered among each other, and the allocator is told
// of every stream that uses it, so that whatever race or unmap under work the simulator sees is the allocator's. Blocks
// are filled when they are served and looked at when they are freed. What is unmapped is neither live nor pinned.
// Requests may be refused for lack of memory; any other error ends the program.
class RandomOperations {
 public:
  // Everything must outlive it. On the thread that runs the program.
  RandomOperations(StressDevice& device, Allocator& allocator, const RandomShape& shape, Choices& choices);
  ~RandomOperations();
  RandomOperations(const RandomOperations&) = delete;
  RandomOperations& operator=(const RandomOperations&) = delete;

  // So many operations, or as many as there are choices for. The error says at which one. Once.
  [[nodiscard]] absl::Status Run(uint64_t operations);
  // Frees what is left, waits for all queued work and has everything given back, which must leave nothing reserved.
  [[nodiscard]] absl::Status End();

  [[nodiscard]] uint64_t served() const { return served_; }
  [[nodiscard]] uint64_t refused() const { return refused_; }
  [[nodiscard]] uint64_t warnings() const { return warnings_; }
  [[nodiscard]] uint64_t vetoes() const { return vetoes_; }
  // Calls that created memory ahead, and calls that gave back some that nothing had needed for long.
  [[nodiscard]] uint64_t prewarmed() const { return prewarmed_; }
  [[nodiscard]] uint64_t trimmed_unused() const { return trimmed_unused_; }
  // Pinned ranges that lay in a chunk of more than one slot.
  [[nodiscard]] uint64_t pins_in_large_chunks() const { return pins_in_large_chunks_; }

 private:
  struct Block {
    AddressRange range;
    uint64_t key = 0;  // of the contents
    StreamHandle own;
    bool own_is_gone = false;  // the stream was destroyed; another one may have its handle
    StreamHandle last;         // all uses so far come before what this stream is given next
  };

  absl::Status Step();
  absl::Status Check() const;

  // Blocks and streams.
  absl::Status CreateStreams();
  absl::Status Allocate();
  absl::Status AllocateOn(StreamHandle stream);
  absl::Status FreeAny();
  absl::Status UseAny();
  absl::Status Use(Block& block, StreamHandle stream, bool tell);
  absl::Status Replace(size_t stream_index);
  // Something on a thread that then ends, with a default stream of its own.
  absl::Status OnAnotherThread();
  // Forgets a block whose contents are as they should be.
  absl::StatusOr<Block> TakeAny();
  absl::Status ExpectNotLive(DeviceAddress address);

  // Everything else.
  absl::Status ChangePools();
  absl::Status ChangePins();
  absl::Status Pin(const Block& block);
  absl::Status ChangeNeighbour();
  absl::Status MisuseSomething();
  absl::Status LookAround();

  // How much is held.
  absl::Status TrimSomething();
  absl::Status ChangeLimits();
  absl::Status CreateAhead();
  void OnSoftLimit(Bytes reserved, Bytes soft_limit);

  // Callbacks, which keep what is wrong for later.
  absl::Status AddCallbacks();
  bool OnOutOfMemory();
  bool OnUnmap(AddressRange range);

  [[nodiscard]] Bytes AnySize();
  [[nodiscard]] StreamHandle AnyStream() { return streams_[choices_.Below(streams_.size())]; }
  [[nodiscard]] PoolId AnyPool() { return pools_[choices_.Below(pools_.size())]; }

  StressDevice& device_;
  Allocator& allocator_;
  const RandomShape shape_;
  Choices& choices_;
  std::vector<StreamHandle> streams_;
  std::vector<PoolId> pools_ = {PoolId()};
  std::vector<Block> live_;
  Bytes live_bytes_;
  uint64_t next_key_ = 0;
  uint64_t served_ = 0;
  uint64_t refused_ = 0;
  std::atomic<uint64_t> warnings_{0};  // of a job in the background too
  std::atomic<bool> wrong_warning_{false};
  uint64_t prewarmed_ = 0;
  uint64_t trimmed_unused_ = 0;
  bool job_ = false;  // there may be one in the background
  uint64_t vetoes_ = 0;
  uint64_t pins_in_large_chunks_ = 0;
  std::vector<AddressRange> pins_;
  MappingWatch watch_;
  bool vetoing_;
  bool on_another_thread_ = false;
  absl::Status in_callback_;
  std::optional<CallbackId> when_short_;
  std::vector<MappingCallbacksId> when_mapping_;
};

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_RANDOM_OPERATIONS_H_

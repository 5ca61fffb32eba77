// A program that calls every function of an allocator at random, uses what it gets, and mistrusts the allocator.

#ifndef EXPANSE_TESTS_STRESS_RANDOM_OPERATIONS_H_
#define EXPANSE_TESTS_STRESS_RANDOM_OPERATIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/allocator.h"
#include "tests/stress/choices.h"
#include "tests/stress/stress_device.h"
#include "vmm/units.h"

namespace expanse::stress {

// A correct program as far as streams go: all uses of a block are ordered among each other, and the allocator is told
// of every stream that uses it, so that whatever race or unmap under work the simulator sees is the allocator's. Blocks
// are filled when they are served and looked at when they are freed. Requests may be refused for lack of memory; any
// other error ends the program.
class RandomOperations {
 public:
  // What a program is like. All of it is drawn from the choices, in this order, by Draw.
  struct Shape {
    Bytes memory;
    Bytes chunk;
    AllocatorOptions options;
    uint64_t streams = 1;            // 1 to 8, the first of them the legacy default stream
    bool per_thread_stream = false;  // the second one is the thread's default stream
    bool frees_when_asked = false;   // an out-of-memory callback frees a block
    bool device_gives_back_late = false;
  };
  [[nodiscard]] static Shape Draw(Choices& choices);
  // The device for it, whose memory is real.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<StressDevice>> OpenDevice(const Shape& shape);

  // Everything must outlive it. On the thread that runs the program.
  RandomOperations(StressDevice& device, Allocator& allocator, const Shape& shape, Choices& choices);
  ~RandomOperations();
  RandomOperations(const RandomOperations&) = delete;
  RandomOperations& operator=(const RandomOperations&) = delete;

  // So many operations, or as many as there are choices for. The error says at which one. Once.
  [[nodiscard]] absl::Status Run(uint64_t operations);
  // Frees what is left, waits for all queued work and has everything given back, which must leave nothing reserved.
  [[nodiscard]] absl::Status End();

  [[nodiscard]] uint64_t served() const { return served_; }
  [[nodiscard]] uint64_t refused() const { return refused_; }

 private:
  struct Block {
    AddressRange range;
    uint64_t key = 0;  // of the contents
    StreamHandle own;
    bool own_is_gone = false;  // the stream was destroyed; another one may have its handle
    StreamHandle last;         // all uses so far come before what this stream is given next
  };

  absl::Status Step();
  absl::Status CreateStreams();
  absl::Status Allocate();
  absl::Status Free(size_t index);
  absl::Status FreeAny();
  absl::Status UseAny();
  absl::Status Use(Block& block, StreamHandle stream, bool tell);
  absl::Status Replace(size_t stream_index);
  absl::Status ChangePools();
  absl::Status TrimSomething();
  absl::Status MisuseSomething();
  absl::Status ChangeLimit();
  bool OnOutOfMemory();
  absl::Status Check() const;

  [[nodiscard]] Bytes AnySize();
  [[nodiscard]] StreamHandle AnyStream() { return streams_[choices_.Below(streams_.size())]; }
  [[nodiscard]] PoolId AnyPool() { return pools_[choices_.Below(pools_.size())]; }

  StressDevice& device_;
  Allocator& allocator_;
  const Shape shape_;
  Choices& choices_;
  std::vector<StreamHandle> streams_;
  std::vector<PoolId> pools_ = {PoolId()};
  std::vector<Block> live_;
  Bytes live_bytes_;
  uint64_t next_key_ = 0;
  uint64_t served_ = 0;
  uint64_t refused_ = 0;
  absl::Status in_callback_;
  std::optional<CallbackId> callback_;
};

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_RANDOM_OPERATIONS_H_

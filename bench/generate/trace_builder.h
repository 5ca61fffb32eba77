// Makes a well-formed trace event by event.

#ifndef EXPANSE_BENCH_GENERATE_TRACE_BUILDER_H_
#define EXPANSE_BENCH_GENERATE_TRACE_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/trace/trace.h"
#include "vmm/units.h"

namespace expanse::bench {

// The most events that a generator makes: the whole trace is held in memory.
inline constexpr uint64_t kMaxGeneratedEvents = 100'000'000;

// A block of the trace being built: blocks are numbered in order of allocation, and the number is also its id.
class BlockId {
 public:
  explicit constexpr BlockId(uint32_t index) : index_(index) {}
  [[nodiscard]] constexpr uint32_t index() const { return index_; }
  friend constexpr bool operator==(BlockId a, BlockId b) { return a.index_ == b.index_; }

 private:
  uint32_t index_;
};

// Invariant: events so far are well-formed, or `error_` says what was the first that would not have been. A misuse is
// a fault of the generator, so it is kept and reported once, by Finish, instead of at each call. Not thread-safe.
// Every call is O(1) but for Finish.
class TraceBuilder {
 public:
  explicit TraceBuilder(std::string name) { trace_.name = std::move(name); }

  BlockId Allocate(Bytes size, int32_t stream = 0);
  // A free is ordered after the work of the stream that the block was allocated for.
  void Free(BlockId block);
  void Free(std::initializer_list<BlockId> blocks);
  void Free(const std::vector<BlockId>& blocks);
  void Mark(std::string label);

  [[nodiscard]] uint64_t live_blocks() const { return live_blocks_; }
  [[nodiscard]] Bytes live() const { return live_; }

  // The trace. INTERNAL naming the first misuse: a block of zero bytes, a free of a block that is not live.
  [[nodiscard]] absl::StatusOr<Trace> Finish() &&;

 private:
  struct Block {
    Bytes size;  // zero once freed
    int32_t stream;
  };

  Trace trace_;
  std::vector<Block> blocks_;
  uint64_t live_blocks_ = 0;
  Bytes live_;
  absl::Status error_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_GENERATE_TRACE_BUILDER_H_

// A program that allocates and frees as a trace says, uses what it gets, and mistrusts the allocator.

#ifndef EXPANSE_TESTS_STRESS_STRESS_PROGRAM_H_
#define EXPANSE_TESTS_STRESS_STRESS_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/generate/rng.h"
#include "bench/trace/trace.h"
#include "core/allocator.h"
#include "tests/stress/stress_device.h"
#include "vmm/units.h"

namespace expanse::stress {

struct ProgramOptions {
  // Blocks are filled at their ends and where chunks of this size meet, and checked when they are freed. None: they are
  // not touched. Needs a device with real memory.
  std::optional<Bytes> contents_by_chunk;
  // Work of random length is queued on blocks, now and then on another stream than their own.
  bool queued_work = false;
  // Whether a request that is refused is a failure; else its block is left out.
  bool must_serve = true;
  uint64_t runs = 1;         // of the trace, one after the other
  uint64_t check_every = 0;  // events between two calls of CheckInvariants; 0: at the end of each run alone
  uint64_t seed = 0;
};

// Runs one trace from one thread on one or more streams; several may share an allocator. With queued work it is a
// correct program: all uses of a block are ordered among each other, and Free or RecordUse names every stream that
// used it. Whatever race the simulator then sees is the allocator's.
class StressProgram {
 public:
  // `streams` are the trace's, by number. Everything must outlive this.
  StressProgram(StressDevice& device, Allocator& allocator, const bench::Trace& trace,
                std::vector<StreamHandle> streams, const ProgramOptions& options);

  // All runs; everything is freed at the end of each. An error names run, event and seed. Call on the thread that the
  // program is to run on, once.
  [[nodiscard]] absl::Status Run();

  [[nodiscard]] uint64_t refused() const { return refused_; }

 private:
  struct Block {
    AddressRange range;  // null where it is not live
    StreamHandle last_used;
  };

  absl::Status RunOnce(uint64_t run);
  absl::Status Apply(uint64_t run, const bench::TraceEvent& event);
  absl::Status Allocate(uint64_t run, const bench::TraceEvent& event);
  absl::Status Free(uint64_t run, uint32_t block);
  // The blocks that the trace leaves live, in random order.
  absl::Status FreeTheRest(uint64_t run);
  absl::Status QueueWork(const Block& block);
  // Uses the block on another stream, and tells the allocator at once or by the stream that it is freed on, which is
  // then set.
  absl::Status UseElsewhere(Block& block, bool& free_where_used);
  // What the block holds; differs between blocks, runs and programs.
  [[nodiscard]] uint64_t Key(uint64_t run, uint32_t block) const;

  StressDevice& device_;
  Allocator& allocator_;
  const bench::Trace& trace_;
  const std::vector<StreamHandle> streams_;
  const ProgramOptions options_;
  bench::Rng rng_;
  std::vector<Block> blocks_;  // by the trace's number
  uint64_t refused_ = 0;
};

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_STRESS_PROGRAM_H_

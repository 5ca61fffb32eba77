// Benchmarks of allocate/free pairs: what a pair costs the driver and the host once an allocator is warm.
//
// Each reports, per pair:
//   driver_calls         calls of driver entry points
//   modelled_driver_us   what the simulator's cost model prices those calls at: modelled, never measured
//   host_ns              host time of the allocator alone, measured: the time spent inside the simulator, which stands
//                        for the driver, is subtracted
// Google Benchmark's own Time and CPU columns include the simulator and mean little. Compare host_ns between allocators
// that serve from memory at hand. An allocator whose pairs all reach the driver, as `naive` does, costs what the driver
// costs: for it modelled_driver_us is what is to be compared.
//
// `caching` guards all its state by one lock, as PyTorch's does, and its figures with two threads show that.

#ifndef EXPANSE_BENCH_MICRO_PAIR_BENCHMARK_H_
#define EXPANSE_BENCH_MICRO_PAIR_BENCHMARK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/generate/rng.h"
#include "benchmark/benchmark.h"
#include "vmm/units.h"

namespace expanse::bench {

// What the pairs of a benchmark are: so many live blocks, of sizes that are log-uniform between two.
struct PairShape {
  size_t live = 32;
  Bytes smallest = KiB(4);
  Bytes largest = MiB(64);
};

// What one thread does: pairs of an allocation and a free. Not thread-safe.
class PairLane {
 public:
  // Everything that is random is drawn here, so that the loop does nothing but the calls.
  PairLane(BenchAllocator& allocator, StreamHandle stream, const PairShape& shape, uint64_t seed);
  virtual ~PairLane() = default;

  // Does `live` pairs.
  [[nodiscard]] virtual absl::Status RunBatch() = 0;

 protected:
  [[nodiscard]] size_t live() const { return live_; }
  [[nodiscard]] Rng& rng() { return rng_; }
  // Allocates a block of the next size, and remembers it last.
  absl::Status AllocateNext();
  // Tells that another stream uses the block that was remembered last.
  absl::Status UseLast(StreamHandle stream) { return allocator_.RecordUse(blocks_.back(), stream); }
  // Frees the block that was remembered last.
  absl::Status FreeLast();
  // Live blocks, at most `live`.
  [[nodiscard]] std::vector<DeviceAddress>& blocks() { return blocks_; }

 private:
  BenchAllocator& allocator_;
  const StreamHandle stream_;
  const size_t live_;
  Rng rng_;
  std::vector<Bytes> sizes_;  // used round and round
  size_t next_size_ = 0;
  std::vector<DeviceAddress> blocks_;
};

using LaneFactory = std::function<std::unique_ptr<PairLane>(BenchAllocator& allocator, StreamHandle stream,
                                                            const PairShape& shape, uint64_t seed)>;
// What the argument of a benchmark means.
using ShapeOf = std::function<PairShape(int64_t argument)>;

// Makes the lanes of one class.
template <typename Lane>
[[nodiscard]] LaneFactory FactoryOf() {
  return [](BenchAllocator& allocator, StreamHandle stream, const PairShape& shape, uint64_t seed) {
    return std::make_unique<Lane>(allocator, stream, shape, seed);
  };
}

// Registers FAMILY<allocator>/ARGUMENT:A for each of these allocators and arguments, and returns them, for more
// options.
std::vector<benchmark::internal::Benchmark*> RegisterPairs(const std::string& family, const LaneFactory& factory,
                                                           const std::vector<std::string>& allocators,
                                                           const std::string& argument,
                                                           const std::vector<int64_t>& arguments, const ShapeOf& shape);

// Registers FAMILY<allocator>/live:L/threads:T for expanse, caching and naive, 32 and 1024 live blocks a thread, and 1
// and 2 threads.
void RegisterPairBenchmarks(const std::string& family, const LaneFactory& factory);

// Registers BM_RecorderOverhead<FAMILY>/live:L, as recorder_overhead.cc describes it.
void RegisterRecorderOverhead(const std::string& family, const LaneFactory& factory);

// One for each order of frees, each in a file of its own.
void RegisterLifoPairs();
void RegisterRandomPairs();
// By size, by the number of live blocks, and freed on another stream.
void RegisterSizeSweep();
void RegisterLiveCountSweep();
void RegisterCrossStreamFrees();

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_MICRO_PAIR_BENCHMARK_H_

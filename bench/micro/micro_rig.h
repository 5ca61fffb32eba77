// An allocator on a simulated device of its own, to be measured.

#ifndef EXPANSE_BENCH_MICRO_MICRO_RIG_H_
#define EXPANSE_BENCH_MICRO_MICRO_RIG_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/allocators/bench_allocator.h"
#include "vmm/sim/simulator.h"
#include "vmm/units.h"

namespace expanse::bench {

// The device has 80 GiB in accounting mode, so that blocks of any size cost the host next to nothing. Each measuring
// thread has a stream of its own. As thread-safe as the allocator.
class MicroRig {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<MicroRig>> Open(std::string_view allocator, int threads);
  ~MicroRig();
  MicroRig(const MicroRig&) = delete;
  MicroRig& operator=(const MicroRig&) = delete;

  [[nodiscard]] BenchAllocator& allocator() { return *allocator_; }
  [[nodiscard]] StreamHandle stream(int thread) const { return streams_[static_cast<size_t>(thread)]; }
  [[nodiscard]] sim::Simulator& simulator() { return *simulator_; }

 private:
  explicit MicroRig(std::unique_ptr<sim::Simulator> simulator) : simulator_(std::move(simulator)) {}

  std::unique_ptr<sim::Simulator> simulator_;
  bool retained_ = false;
  std::vector<StreamHandle> streams_;
  std::unique_ptr<BenchAllocator> allocator_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_MICRO_MICRO_RIG_H_

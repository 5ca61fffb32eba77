// Where scenarios take place: one allocator on a small simulated device of its own.

#ifndef EXPANSE_TESTS_SCENARIOS_STAGE_H_
#define EXPANSE_TESTS_SCENARIOS_STAGE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/allocators/bench_allocator.h"
#include "vmm/driver.h"
#include "vmm/sim/config.h"
#include "vmm/sim/simulator.h"
#include "vmm/units.h"

namespace expanse::scenarios {

// A scenario is a function of an allocator's name that says how it went. A test runs it twice: Expanse must do well,
// and the rival that the scenario is about must not, so that a scenario which shows nothing fails.
//
// The device keeps books only. Whatever the allocator, its invariants hold after each operation, no hazard occurs, and
// at the end the driver has everything back; what does not is a failure of the test. One stage at most exists at once,
// used by one thread.
class Stage {
 public:
  // A device of so much memory, with everything else at its default.
  Stage(std::string_view allocator, Bytes memory);
  Stage(std::string_view allocator, const sim::Config& config, const bench::BenchAllocatorOptions& options);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] static sim::Config Device(Bytes memory);

  // For scenarios of many blocks: from now on invariants are checked at the end alone.
  void CheckAtTheEnd() { check_each_ = false; }

  [[nodiscard]] StreamHandle NewStream();
  // Queues work on a stream that writes the block; a null block is skipped, here and below.
  void Work(StreamHandle stream, AddressRange block, std::chrono::microseconds duration);
  // Work on `later` from now on runs after what `earlier` was given so far.
  void Order(StreamHandle earlier, StreamHandle later);

  // A null range where memory did not suffice, which refused() then counts.
  AddressRange Allocate(Bytes size, StreamHandle stream = StreamHandle());
  std::vector<AddressRange> Allocate(int count, Bytes size, StreamHandle stream = StreamHandle());
  void Free(AddressRange block, StreamHandle stream = StreamHandle());
  void Free(const std::vector<AddressRange>& blocks, StreamHandle stream = StreamHandle());
  void RecordUse(AddressRange block, StreamHandle stream);

  [[nodiscard]] int refused() const { return refused_; }
  [[nodiscard]] bool served_all() const { return refused_ == 0; }
  [[nodiscard]] bench::AllocatorFigures figures() const { return allocator_->figures(); }
  // The most that was ever reserved over the most that was ever live.
  [[nodiscard]] double Overhead() const;

  [[nodiscard]] const Driver& driver() const { return simulator_->driver(); }
  [[nodiscard]] uint64_t Calls(EntryPoint entry_point) const {
    return simulator_->counters().calls[static_cast<int>(entry_point)];
  }
  [[nodiscard]] uint64_t AllCalls() const { return simulator_->counters().TotalCalls(); }
  // What callers waited for queued work so far.
  [[nodiscard]] sim::VirtualTime Stalled() const { return simulator_->counters().stalled; }

 private:
  void Check();
  void CheckEach() {
    if (check_each_) Check();
  }

  std::unique_ptr<sim::Simulator> simulator_;
  std::unique_ptr<bench::BenchAllocator> allocator_;
  std::vector<StreamHandle> streams_;
  bool check_each_ = true;
  int refused_ = 0;
};

}  // namespace expanse::scenarios

#endif  // EXPANSE_TESTS_SCENARIOS_STAGE_H_

// The simulated device that stress programs run on.

#ifndef EXPANSE_TESTS_STRESS_STRESS_DEVICE_H_
#define EXPANSE_TESTS_STRESS_STRESS_DEVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/driver.h"
#include "vmm/sim/simulator.h"
#include "vmm/units.h"

namespace expanse::stress {

// A simulator with one device, whose primary context is held, and streams made on request. Programs on several threads
// may share one; each thread calls MakeCurrent first. CreateStream, DestroyStream and Close are for one thread at a
// time.
class StressDevice {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<StressDevice>> Open(Bytes memory, Bytes granularity,
                                                                          sim::MemoryMode mode);
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<StressDevice>> Open(const sim::Config& config);
  ~StressDevice();
  StressDevice(const StressDevice&) = delete;
  StressDevice& operator=(const StressDevice&) = delete;

  [[nodiscard]] const Driver& driver() const { return simulator_->driver(); }
  [[nodiscard]] sim::Simulator& simulator() { return *simulator_; }

  // Makes the context current on the calling thread.
  [[nodiscard]] absl::Status MakeCurrent();
  // A non-blocking stream, which lives until Close or DestroyStream.
  [[nodiscard]] absl::StatusOr<StreamHandle> CreateStream();
  // Queued work goes on.
  [[nodiscard]] absl::Status DestroyStream(StreamHandle stream);
  // Work queued on `later` from now on runs after what `earlier` was given so far.
  [[nodiscard]] absl::Status Order(StreamHandle earlier, StreamHandle later);
  [[nodiscard]] absl::Status WaitForEverything();

  // Gives back streams and context, then OK where nothing is left with the driver, no rule was broken and the simulator
  // is sound; else INTERNAL saying what is not. Call once every allocator is gone.
  [[nodiscard]] absl::Status Close();

 private:
  explicit StressDevice(std::unique_ptr<sim::Simulator> simulator) : simulator_(std::move(simulator)) {}
  void GiveBack();

  std::unique_ptr<sim::Simulator> simulator_;
  abi::Context context_ = nullptr;
  std::vector<StreamHandle> streams_;
};

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_STRESS_DEVICE_H_

// A replay on the simulated driver.

#ifndef EXPANSE_BENCH_REPLAY_SIMULATED_REPLAY_DEVICE_H_
#define EXPANSE_BENCH_REPLAY_SIMULATED_REPLAY_DEVICE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/replay/replay_device.h"
#include "vmm/sim/simulator.h"

namespace expanse::bench {

// Memory is accounted for only, unless contents are to be touched. With lag the virtual clock counts events: one tick
// each, and calls do not move it. Calls that the replay makes itself are counted by the simulator like any other, so
// they are summed apart and subtracted.
class SimulatedReplayDevice final : public ReplayDevice {
 public:
  // Virtual time between two events where there is lag.
  static constexpr sim::VirtualTime kTick = std::chrono::seconds(1);
  static constexpr uint64_t kMaxHazards = 3;  // described

  static absl::StatusOr<std::unique_ptr<SimulatedReplayDevice>> Open(const Trace& trace, const ReplayOptions& options);
  ~SimulatedReplayDevice() override;

  const Driver& driver() const override { return simulator_->driver(); }
  DriverUse use() const override;
  void ResetUse() override;
  absl::Status Wait(StreamHandle stream) override;
  uint64_t hazard_count() const override { return simulator_->hazard_count(); }
  std::vector<std::string> FirstHazards() const override;
  absl::Status CheckNothingLeft() override;

  // Host pointers: the simulator's real memory can be dereferenced.
  absl::Status Write(DeviceAddress address, absl::Span<const uint8_t> bytes) override;
  absl::Status Read(DeviceAddress address, absl::Span<uint8_t> bytes) override;

  // Queued work that reads and writes `range`.
  [[nodiscard]] absl::Status Launch(StreamHandle stream, AddressRange range, sim::VirtualTime duration);
  // The same, to end `ticks` from now.
  [[nodiscard]] absl::Status LaunchForTicks(StreamHandle stream, AddressRange range, uint64_t ticks);
  // What `then` is given from now on waits for what `first` was given so far, as a program orders two streams.
  [[nodiscard]] absl::Status Order(StreamHandle first, StreamHandle then);
  void Tick() { simulator_->Advance(kTick); }

 private:
  // Sums what the replay itself does in its scope.
  class Own;

  SimulatedReplayDevice(std::unique_ptr<sim::Simulator> simulator, bool clock_counts_events)
      : ReplayDevice(DeviceOrdinal(0)), simulator_(std::move(simulator)), clock_counts_events_(clock_counts_events) {}

  std::unique_ptr<sim::Simulator> simulator_;
  const bool clock_counts_events_;
  sim::Counters own_;
  abi::Event event_ = nullptr;  // for Order; made when first needed
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_SIMULATED_REPLAY_DEVICE_H_

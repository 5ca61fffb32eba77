// The device that a trace is replayed on, simulated or real, as the replay uses it.

#ifndef EXPANSE_BENCH_REPLAY_REPLAY_DEVICE_H_
#define EXPANSE_BENCH_REPLAY_REPLAY_DEVICE_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/replay/contents.h"
#include "bench/replay/replay.h"
#include "bench/trace/trace.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse::bench {

// What an allocator made of the driver since the last ResetUse. The replay's own calls are not in it.
struct DriverUse {
  std::array<uint64_t, kEntryPointCount> calls{};
  std::optional<double> modelled_us;  // simulator: what the calls are modelled to cost
  std::optional<double> measured_us;  // real device: what they took
  std::optional<double> stall_us;     // simulator: what they waited for queued work, on the virtual clock
  // Real host time spent below the driver table, which is none of the allocator's.
  std::chrono::nanoseconds host_inside{};

  [[nodiscard]] uint64_t TotalCalls() const;
};

// Holds the device's primary context, current on the thread that opened it, and the trace's streams, until destroyed,
// which must be on that thread and after every allocator that uses the device. Not thread-safe.
class ReplayDevice : public ContentsAccess {
 public:
  // The device that `options` name, with streams for `trace`: 0 is the legacy default stream, every other one is
  // created, non-blocking. Errors: FAILED_PRECONDITION if another simulator is alive; what the
  // driver says.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ReplayDevice>> Open(const Trace& trace,
                                                                          const ReplayOptions& options);
  ~ReplayDevice() override = default;
  ReplayDevice(const ReplayDevice&) = delete;
  ReplayDevice& operator=(const ReplayDevice&) = delete;

  // The table for the allocator: calls through it are counted.
  [[nodiscard]] virtual const Driver& driver() const = 0;
  [[nodiscard]] virtual DriverUse use() const = 0;
  virtual void ResetUse() = 0;
  // Waits for what the stream was given so far.
  [[nodiscard]] virtual absl::Status Wait(StreamHandle stream) = 0;

  // Breaches of the driver's rules that the simulator saw; none on a real device, which does not tell.
  [[nodiscard]] virtual uint64_t hazard_count() const { return 0; }
  [[nodiscard]] virtual std::vector<std::string> FirstHazards() const { return {}; }
  // OK where everything was given back to the simulated driver, or there were hazards, after which nothing can be. Call
  // once the allocator is gone. OK on a real device.
  [[nodiscard]] virtual absl::Status CheckNothingLeft() { return absl::OkStatus(); }

  [[nodiscard]] DeviceOrdinal ordinal() const { return ordinal_; }
  [[nodiscard]] Bytes total_memory() const { return total_memory_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // `stream` must be one of the trace's. O(1).
  [[nodiscard]] StreamHandle stream(int32_t stream) const { return streams_.at(stream); }

 protected:
  explicit ReplayDevice(DeviceOrdinal ordinal) : ordinal_(ordinal) {}
  // Initialises the driver, takes the context and makes the streams. CloseContext undoes it, as far as it came, and
  // ignores what the driver answers.
  absl::Status OpenContext(const Driver& driver, const Trace& trace);
  void CloseContext(const Driver& driver);
  // The first half of it.
  void CloseStreams(const Driver& driver);

 private:
  DeviceOrdinal ordinal_;
  Bytes total_memory_;
  std::string name_;
  bool retained_ = false;
  absl::flat_hash_map<int32_t, StreamHandle> streams_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_REPLAY_DEVICE_H_

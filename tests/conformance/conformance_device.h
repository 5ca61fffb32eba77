// The devices that the conformance suite runs on: simulated ones in several shapes, and a real one.

#ifndef EXPANSE_TESTS_CONFORMANCE_CONFORMANCE_DEVICE_H_
#define EXPANSE_TESTS_CONFORMANCE_CONFORMANCE_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "vmm/driver.h"
#include "vmm/sim/config.h"
#include "vmm/sim/simulator.h"
#include "vmm/units.h"

namespace expanse {

// A driver with one device that tests may fill, its primary context retained and current on the thread that opened it.
class ConformanceDevice {
 public:
  // The names of the devices to test on. "cuda" is among them only where EXPANSE_TEST_CUDA=1 is set.
  //   books        simulated, keeps books only
  //   memory       simulated, with real memory
  //   contrary     books only, with every open question about the driver answered the other way but for release_lag
  //   late         books only, with freed memory that is there again only after a wait
  [[nodiscard]] static std::vector<std::string> Names();
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ConformanceDevice>> Open(const std::string& name);
  ~ConformanceDevice();
  ConformanceDevice(const ConformanceDevice&) = delete;
  ConformanceDevice& operator=(const ConformanceDevice&) = delete;

  [[nodiscard]] const Driver& driver() const { return driver_; }
  // Null on a real device.
  [[nodiscard]] sim::Simulator* simulator() const { return simulator_.get(); }
  // Whether blocks have contents.
  [[nodiscard]] bool has_contents() const;
  // What an allocator can hope to get.
  [[nodiscard]] Bytes usable() const { return usable_; }
  [[nodiscard]] Bytes total() const { return total_; }

  // Makes the context current on another thread.
  void UseOnThisThread() const;
  [[nodiscard]] StreamHandle NewStream();
  // Queued work may go on.
  void DestroyStream(StreamHandle stream);
  // What `later` is given from now on runs after what `earlier` was given so far, as a program orders its streams.
  void Order(StreamHandle earlier, StreamHandle later) const;
  // Waits for everything.
  void Synchronize() const;

  // Fills a block with a byte, as work on the stream.
  void Fill(AddressRange block, unsigned char value, StreamHandle stream) const;
  // Whether every byte of a block, read as work on the stream, is the value. True where blocks have no contents.
  [[nodiscard]] bool Holds(AddressRange block, unsigned char value, StreamHandle stream) const;

  // Destroys the streams and lets the context go. What is left then belongs to whoever leaked it.
  void Close();

 private:
  ConformanceDevice() = default;

  std::unique_ptr<sim::Simulator> simulator_;
  Driver driver_;
  abi::Context context_ = nullptr;
  Bytes total_;
  Bytes usable_;
  std::vector<StreamHandle> streams_;
};

}  // namespace expanse

#endif  // EXPANSE_TESTS_CONFORMANCE_CONFORMANCE_DEVICE_H_

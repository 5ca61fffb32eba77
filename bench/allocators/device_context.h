// The primary context of a device, kept for as long as a rival allocator lives.

#ifndef EXPANSE_BENCH_ALLOCATORS_DEVICE_CONTEXT_H_
#define EXPANSE_BENCH_ALLOCATORS_DEVICE_CONTEXT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse::bench {

// Retains the context, and makes it current on each thread that calls the allocator, as the CUDA runtime would do for
// PyTorch. A thread pays a driver call for that once: whoever changes a thread's context afterwards is expected to put
// it back, as the runtime and well-behaved libraries do. So a rival is charged for the calls that its policy makes and
// no others, which expanse::Device, with its probes, and ScopedContext, with two calls each time, would not give.
//
// Thread-safe.
class DeviceContext {
 public:
  // Makes the context current on the calling thread.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<DeviceContext>> Create(const Driver& driver,
                                                                             DeviceOrdinal ordinal);
  // Lets the context go. A last reference takes the context with it, so it is then no longer current here.
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  [[nodiscard]] const Driver& driver() const { return driver_; }
  [[nodiscard]] abi::Device device() const { return device_; }
  [[nodiscard]] Bytes total_memory() const { return total_memory_; }

  // Called before driver calls that work on the current context. No driver call but for a thread's first time.
  [[nodiscard]] absl::Status MakeCurrent();

 private:
  DeviceContext(const Driver& driver, abi::Device device, abi::Context context, Bytes total_memory);

  const Driver driver_;
  const abi::Device device_;
  const abi::Context context_;
  const Bytes total_memory_;
  const uint64_t id_;  // unique in the process, unlike addresses of contexts
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_DEVICE_CONTEXT_H_

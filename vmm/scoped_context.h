// Guards for the calling thread's driver state: its current context and its stream capture mode.

#ifndef EXPANSE_VMM_SCOPED_CONTEXT_H_
#define EXPANSE_VMM_SCOPED_CONTEXT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/device.h"
#include "vmm/driver.h"

namespace expanse {

// Makes a device's primary context current on this thread for a scope. Functions that need a current context take one
// as proof, so that a batch of them costs one push and one pop in all.
//
// The virtual memory calls need no context: take one only for streams, events, copies and memory information. Must be
// used and destroyed on the thread that made it, in reverse order of making; the device must outlive it.
class ScopedContext {
 public:
  // One driver call. FAILED_PRECONDITION or what else the driver says: nothing was pushed.
  [[nodiscard]] static absl::StatusOr<ScopedContext> Enter(const Device& device);
  // Pops unless Leave did, and ignores what the driver answers.
  ~ScopedContext();
  ScopedContext(ScopedContext&& other) noexcept;
  ScopedContext& operator=(ScopedContext&&) = delete;

  // Pops. INTERNAL if another context was on top, which means that something in the scope left its own behind. Called
  // at most once; nothing may use this object afterwards.
  [[nodiscard]] absl::Status Leave();

  [[nodiscard]] const Device& device() const { return *device_; }

 private:
  explicit ScopedContext(const Device& device) : device_(&device), entered_(true) {}

  const Device* device_;
  bool entered_;
};

// Puts this thread in relaxed stream capture mode for a scope: event queries and synchronising calls then neither fail
// nor invalidate a capture that another stream is in. The virtual memory calls are allowed in every mode (see the
// capture tests of ROCm's hip-tests, which run them in all three on NVIDIA hardware too), so growth does not need it.
//
// Two driver calls, or none where the driver lacks the entry point. If the driver refuses, the mode stays as it is.
// Must be destroyed on the thread that made it.
class ScopedRelaxedCapture {
 public:
  explicit ScopedRelaxedCapture(const Driver& driver);
  ~ScopedRelaxedCapture();
  ScopedRelaxedCapture(const ScopedRelaxedCapture&) = delete;
  ScopedRelaxedCapture& operator=(const ScopedRelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  int previous_ = abi::kCaptureRelaxed;
  bool exchanged_ = false;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_SCOPED_CONTEXT_H_

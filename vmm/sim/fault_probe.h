// For tests: whether the host may touch an address.

#ifndef EXPANSE_VMM_SIM_FAULT_PROBE_H_
#define EXPANSE_VMM_SIM_FAULT_PROBE_H_

#include <csetjmp>
#include <csignal>

namespace expanse::sim {

// A forked child sees no device memory at all, so a death test would prove nothing: the fault is taken here, and
// survived. One thread at a time.
class FaultProbe {
 public:
  // Touching means reading the byte, or writing back what was read.
  [[nodiscard]] static bool ReadFaults(const void* address) { return Faults(address, false); }
  [[nodiscard]] static bool WriteFaults(const void* address) { return Faults(address, true); }

 private:
  static inline sigjmp_buf before_touch_;

  static bool Faults(const void* address, bool write) {
    struct sigaction action = {}, old_segv = {}, old_bus = {};
    action.sa_handler = [](int) { siglongjmp(before_touch_, 1); };
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    auto* byte = static_cast<volatile unsigned char*>(const_cast<void*>(address));
    volatile bool faulted = true;
    if (sigsetjmp(before_touch_, 1) == 0) {
      const unsigned char value = *byte;
      if (write) *byte = value;
      faulted = false;
    }
    sigaction(SIGSEGV, &old_segv, nullptr);
    sigaction(SIGBUS, &old_bus, nullptr);
    return faulted;
  }
};

}  // namespace expanse::sim

#endif  // EXPANSE_VMM_SIM_FAULT_PROBE_H_

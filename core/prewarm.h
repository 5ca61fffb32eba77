// Memory that is being created before it is asked for.

#ifndef EXPANSE_CORE_PREWARM_H_
#define EXPANSE_CORE_PREWARM_H_

#include <cstdint>
#include <thread>

#include "absl/status/status.h"
#include "vmm/units.h"

namespace expanse {

// One job at a time: what is asked for while it runs is added to it. So much is `left` to be created, in chunks of at
// most `largest` slots; each chunk is subtracted once it was created, so that the job ends whatever others take or
// release meanwhile. Invariant: nothing is left unless it is running. Guarded by the allocator's lock, which the thread
// that runs it does not hold while it is inside the driver.
struct PrewarmJob {
  bool running = false;
  bool stop = false;         // the allocator is going away
  bool in_callback = false;  // of the program, which may need what another thread holds that asks for memory
  Bytes left;
  uint64_t largest = 1;
  std::thread::id runner;  // while it is running
  std::thread thread;      // the last that ran in the background
  absl::Status status;     // how the last job ended
};

}  // namespace expanse

#endif  // EXPANSE_CORE_PREWARM_H_

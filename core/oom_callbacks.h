// The program's functions that may free memory when none is left.

#ifndef EXPANSE_CORE_OOM_CALLBACKS_H_
#define EXPANSE_CORE_OOM_CALLBACKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/shortage.h"
#include "vmm/mutex.h"

namespace expanse {

// Called in the order in which they were added, without any lock held, so a callback may add and remove callbacks too.
// Thread-safe; has a lock of its own, under which nothing is called.
class OomCallbacks {
 public:
  CallbackId Add(OutOfMemoryCallback callback);
  // Afterwards the callback is not called any more, nor is another thread still in it: waits until no other thread is.
  // A callback may remove itself; its own call does not count. False if there is none with this id.
  bool Remove(CallbackId id);

  // Whether a call of Call by this thread would call anything: not from within a callback.
  [[nodiscard]] bool CanCall() const;
  // Calls each once; whether any asked to try again.
  bool Call(const Shortage& shortage);

 private:
  struct Entry {
    CallbackId id;
    OutOfMemoryCallback callback;
    bool removed = false;
    int running = 0;  // threads that are in it
  };

  mutable Mutex mu_;
  CondVar returned_;  // a call of a removed callback ended
  std::vector<std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mu_);
  CallbackId last_id_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_OOM_CALLBACKS_H_

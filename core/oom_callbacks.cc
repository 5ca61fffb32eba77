#include "core/oom_callbacks.h"

#include <algorithm>
#include <utility>

namespace expanse {
namespace {

// The callback that this thread is in, of whichever allocator: an identity, never dereferenced. Requests that it makes
// call no callback, so there is never more than one.
thread_local const void* inside = nullptr;

}  // namespace

CallbackId OomCallbacks::Add(OutOfMemoryCallback callback) {
  MutexLock lock(mu_);
  entries_.push_back(std::make_shared<Entry>(Entry{++last_id_, std::move(callback)}));
  return last_id_;
}

bool OomCallbacks::Remove(CallbackId id) {
  MutexLock lock(mu_);
  const auto it = std::find_if(entries_.begin(), entries_.end(), [id](const auto& entry) { return entry->id == id; });
  if (it == entries_.end()) return false;
  const std::shared_ptr<Entry> entry = *it;
  entries_.erase(it);
  entry->removed = true;
  const int own = inside == entry.get() ? 1 : 0;
  while (entry->running > own) returned_.Wait(mu_);
  return true;
}

bool OomCallbacks::CanCall() const {
  if (inside != nullptr) return false;
  MutexLock lock(mu_);
  return !entries_.empty();
}

bool OomCallbacks::Call(const Shortage& shortage) {
  std::vector<std::shared_ptr<Entry>> entries;
  {
    MutexLock lock(mu_);
    entries = entries_;
  }
  bool again = false;
  for (const std::shared_ptr<Entry>& entry : entries) {
    {
      MutexLock lock(mu_);
      if (entry->removed) continue;
      ++entry->running;
    }
    inside = entry.get();
    again |= entry->callback(shortage);
    inside = nullptr;
    MutexLock lock(mu_);
    --entry->running;
    if (entry->removed) returned_.NotifyAll();
  }
  return again;
}

}  // namespace expanse

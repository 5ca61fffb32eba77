#include "core/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace expanse {
namespace {

std::atomic<uint64_t> forks_deep{0};

void CountFork() { forks_deep.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

ForkGuard::ForkGuard() {
  // Once per process tree: children inherit the handler. Failure means no host memory, which is fatal elsewhere.
  static const bool registered = pthread_atfork(nullptr, nullptr, &CountFork) == 0;
  (void)registered;
  made_in_ = forks_deep.load(std::memory_order_relaxed);
}

bool ForkGuard::forked() const { return forks_deep.load(std::memory_order_relaxed) != made_in_; }

}  // namespace expanse

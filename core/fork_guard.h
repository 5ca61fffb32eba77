// Tells an allocator that it woke up in a forked child, where no driver call works and every lock may be held by a
// thread that does not exist there.

#ifndef EXPANSE_CORE_FORK_GUARD_H_
#define EXPANSE_CORE_FORK_GUARD_H_

#include <cstdint>

namespace expanse {

// Remembers in which process, counted in forks from the first, it was made. Thread-safe; the test is one relaxed load.
class ForkGuard {
 public:
  ForkGuard();
  // Whether this is a child of the process in which the guard was made.
  [[nodiscard]] bool forked() const;

 private:
  uint64_t made_in_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_FORK_GUARD_H_

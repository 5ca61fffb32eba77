// What all allocators of a process share: driver handles and addresses, both of which the driver limits per process.

#ifndef EXPANSE_CORE_BUDGET_H_
#define EXPANSE_CORE_BUDGET_H_

#include <atomic>
#include <cstdint>

#include "vmm/units.h"

namespace expanse {

// A number of units of which at most a limit is taken at once. Thread-safe and lock-free; every operation is O(1).
class Budget {
 public:
  explicit Budget(uint64_t limit) : limit_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Takes all of `units` or, where that would pass the limit, none.
  [[nodiscard]] bool TryTake(uint64_t units) {
    uint64_t taken = taken_.load(std::memory_order_relaxed);
    do {
      if (units > left(taken)) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + units, std::memory_order_relaxed));
    return true;
  }
  // Gives back units that were taken.
  void Give(uint64_t units) { taken_.fetch_sub(units, std::memory_order_relaxed); }

  [[nodiscard]] uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t left() const { return left(taken()); }
  [[nodiscard]] uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // Takes effect on what is taken later; more may be taken already.
  void set_limit(uint64_t limit) { limit_.store(limit, std::memory_order_relaxed); }

 private:
  [[nodiscard]] uint64_t left(uint64_t taken) const { return taken < limit() ? limit() - taken : 0; }

  std::atomic<uint64_t> limit_;
  std::atomic<uint64_t> taken_{0};
};

// NVIDIA's open kernel module can number 524,288 handles per client (driver-level limit, shared with the context's own
// handles); a part is left to the rest of the process.
inline constexpr uint64_t kHandleBudget = 480'000;
// The driver shares the 47-bit user address space with the host. A quarter is ours.
inline constexpr Bytes kUserAddresses = TiB(128);
inline constexpr Bytes kAddressBudget = kUserAddresses / 4;

// The process-wide budgets: physical memory handles, and bytes of reserved addresses.
[[nodiscard]] Budget& ProcessHandleBudget();
[[nodiscard]] Budget& ProcessAddressBudget();

}  // namespace expanse

#endif  // EXPANSE_CORE_BUDGET_H_

// One entry of the driver table: a function of the driver, and where its calls are counted, if anywhere.

#ifndef EXPANSE_VMM_DRIVER_FUNCTION_H_
#define EXPANSE_VMM_DRIVER_FUNCTION_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "vmm/abi.h"

namespace expanse {

// Calls of one entry point and the wall time inside them, of all threads. What it counts, `parent` counts too.
// Thread-safe; each figure is exact.
class CallCounter {
 public:
  void Add(std::chrono::nanoseconds taken) {
    for (CallCounter* counter = this; counter != nullptr; counter = counter->parent_) {
      counter->calls_.fetch_add(1, std::memory_order_relaxed);
      counter->nanoseconds_.fetch_add(taken.count(), std::memory_order_relaxed);
    }
  }
  void Reset() {
    calls_.store(0, std::memory_order_relaxed);
    nanoseconds_.store(0, std::memory_order_relaxed);
  }
  // Not while anybody may call Add. The parent must outlive this.
  void set_parent(CallCounter* parent) { parent_ = parent; }

  [[nodiscard]] uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::chrono::nanoseconds time() const {
    return std::chrono::nanoseconds(nanoseconds_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<uint64_t> calls_{0};
  std::atomic<int64_t> nanoseconds_{0};
  CallCounter* parent_ = nullptr;
};

template <typename Signature>
class DriverFunction;

// Used as the function pointer it holds, null included. A counted call costs two readings of the clock and two atomic
// additions for each counter more than a direct one.
template <typename... Arguments>
class DriverFunction<abi::Result(Arguments...)> {
 public:
  using Pointer = abi::Result (*)(Arguments...);

  DriverFunction() = default;
  explicit DriverFunction(Pointer function) : function_(function) {}
  // Calls of the new function are not counted.
  DriverFunction& operator=(Pointer function) {
    *this = DriverFunction(function);
    return *this;
  }

  abi::Result operator()(Arguments... arguments) const {
    if (counter_ == nullptr) return function_(arguments...);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const abi::Result result = function_(arguments...);
    counter_->Add(Clock::now() - begin);
    return result;
  }

  // From now on calls count in `counter`, which must outlive every copy, and by it in the one that counted them before.
  void CountIn(CallCounter& counter) {
    counter.set_parent(counter_);
    counter_ = &counter;
  }

  friend bool operator==(const DriverFunction& function, std::nullptr_t) { return function.function_ == nullptr; }
  friend bool operator!=(const DriverFunction& function, std::nullptr_t) { return function.function_ != nullptr; }

 private:
  Pointer function_ = nullptr;
  CallCounter* counter_ = nullptr;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_DRIVER_FUNCTION_H_

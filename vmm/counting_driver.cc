#include "vmm/counting_driver.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/driver.h"

namespace expanse {
namespace {

struct Counter {
  std::atomic<uint64_t> calls{0};
  std::atomic<int64_t> nanoseconds{0};
};

// What the wrappers below work on. `inner` is written only while no counting driver is alive.
std::atomic<bool> alive{false};
Driver inner;
Counter counters[kEntryPointCount];

template <EntryPoint kEntryPoint, auto kMember, typename Function>
struct Counted;

template <EntryPoint kEntryPoint, auto kMember, typename... Arguments>
struct Counted<kEntryPoint, kMember, abi::Result (*)(Arguments...)> {
  static abi::Result Call(Arguments... arguments) {
    using Clock = std::chrono::steady_clock;
    Counter& counter = counters[static_cast<int>(kEntryPoint)];
    const Clock::time_point start = Clock::now();
    const abi::Result result = (inner.*kMember)(arguments...);
    const std::chrono::nanoseconds taken = Clock::now() - start;
    counter.calls.fetch_add(1, std::memory_order_relaxed);
    counter.nanoseconds.fetch_add(taken.count(), std::memory_order_relaxed);
    return result;
  }
};

}  // namespace

uint64_t DriverCallCounts::TotalCalls() const { return std::accumulate(calls.begin(), calls.end(), uint64_t{0}); }

std::chrono::nanoseconds DriverCallCounts::TotalMeasured() const {
  return std::accumulate(measured.begin(), measured.end(), std::chrono::nanoseconds(0));
}

absl::StatusOr<std::unique_ptr<CountingDriver>> CountingDriver::Create(const Driver& wrapped) {
  if (alive.exchange(true)) {
    return absl::FailedPreconditionError("a counting driver is alive already; a process has room for one");
  }
  inner = wrapped;
  auto counting = absl::WrapUnique(new CountingDriver());
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters)                                                \
  if (wrapped.member != nullptr) {                                                                           \
    counting->table_.member = &Counted<EntryPoint::member, &Driver::member, decltype(Driver::member)>::Call; \
  }
#include "vmm/driver_entry_points.inc"
  counting->Reset();
  return counting;
}

CountingDriver::~CountingDriver() { alive.store(false); }

DriverCallCounts CountingDriver::counts() const {
  DriverCallCounts counts;
  for (int i = 0; i < kEntryPointCount; ++i) {
    counts.calls[i] = counters[i].calls.load(std::memory_order_relaxed);
    counts.measured[i] = std::chrono::nanoseconds(counters[i].nanoseconds.load(std::memory_order_relaxed));
  }
  return counts;
}

void CountingDriver::Reset() {
  for (Counter& counter : counters) {
    counter.calls.store(0, std::memory_order_relaxed);
    counter.nanoseconds.store(0, std::memory_order_relaxed);
  }
}

}  // namespace expanse

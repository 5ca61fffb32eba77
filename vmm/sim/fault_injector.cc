#include "vmm/sim/fault_injector.h"

namespace expanse::sim {

void FaultInjector::FailNthCall(EntryPoint entry_point, uint64_t n, abi::Result result) {
  by_entry_point_[static_cast<size_t>(entry_point)] = {n, result};
}

void FaultInjector::FailNthCallOfAny(uint64_t n, abi::Result result) { any_ = {n, result}; }

void FaultInjector::Clear() {
  by_entry_point_.fill({});
  any_ = {};
  create_budget_.reset();
  delays_.fill({});
}

std::optional<abi::Result> FaultInjector::OnCall(EntryPoint entry_point, bool failable) {
  Countdown& one = by_entry_point_[static_cast<size_t>(entry_point)];
  failable_calls_ += failable ? 1 : 0;
  // Both count the call, whichever of them it hits.
  const bool any_hits = failable && any_.Hits();
  if (one.Hits()) return one.result;
  if (any_hits) return any_.result;
  return std::nullopt;
}

}  // namespace expanse::sim

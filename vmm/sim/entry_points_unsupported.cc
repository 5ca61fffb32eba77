// Entry points that the simulated driver has but does not support.

#include "vmm/sim/entry_points.h"

namespace expanse::sim {
namespace {

template <EntryPoint kEntryPoint, typename... Args>
abi::Result NotSupported(Args...) {
  return Enter(kEntryPoint, [](DriverState&) { return abi::kNotSupported; });
}

template <EntryPoint kEntryPoint, typename... Args>
void FillIfNull(DriverFunction<abi::Result(Args...)>& member) {
  if (member == nullptr) member = &NotSupported<kEntryPoint, Args...>;
}

}  // namespace

void FillUnsupportedEntryPoints(Driver& driver) {
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) FillIfNull<EntryPoint::member>(driver.member);
#include "vmm/driver_entry_points.inc"
}

}  // namespace expanse::sim

#include "tests/faults/hooked_driver.h"

#include <cassert>
#include <utility>

namespace expanse::faults {
namespace {

// What the one that is alive wraps and tells.
Driver inner;
HookedDriver::Hook hook;

template <typename... Rest>
AddressRange RangeOf(abi::DevicePtr address, size_t size, Rest...) {
  return {DeviceAddress(address), Bytes(size)};
}

template <EntryPoint kEntryPoint, auto kMember, typename Function>
struct Hooked;

template <EntryPoint kEntryPoint, auto kMember, typename... Arguments>
struct Hooked<kEntryPoint, kMember, DriverFunction<abi::Result(Arguments...)>> {
  static abi::Result Call(Arguments... arguments) {
    DriverCall call{kEntryPoint, {}};
    if constexpr (kEntryPoint == EntryPoint::mem_map || kEntryPoint == EntryPoint::mem_unmap ||
                  kEntryPoint == EntryPoint::mem_set_access) {
      call.range = RangeOf(arguments...);
    }
    if (kEntryPoint != EntryPoint::get_error_name && kEntryPoint != EntryPoint::get_error_string) hook(call);
    return (inner.*kMember)(arguments...);
  }
};

}  // namespace

HookedDriver::HookedDriver(const Driver& wrapped, Hook told) {
  assert(hook == nullptr);
  inner = wrapped;
  hook = std::move(told);
#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters)                                     \
  if (wrapped.member != nullptr) {                                                                \
    table_.member = &Hooked<EntryPoint::member, &Driver::member, decltype(Driver::member)>::Call; \
  }
#include "vmm/driver_entry_points.inc"
}

HookedDriver::~HookedDriver() { hook = nullptr; }

}  // namespace expanse::faults

// What the simulated libcuda.so.1 answers: each driver entry point is passed on to the simulator of the process.

#include "vmm/sim/shared/exports.h"

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <optional>

#include "vmm/sim/shared/process_driver.h"

namespace expanse {
namespace {

template <typename... Parameters>
abi::Result Forward(EntryPoint entry_point, DriverFunction<abi::Result(Parameters...)> Driver::*member,
                    Parameters... arguments) {
  const sim::ProcessDriver& driver = sim::ProcessDriver::Get();
  if (const std::optional<abi::Result> refusal = driver.Refusal(entry_point)) return *refusal;
  return (driver.table().*member)(arguments...);
}

// Says once for each symbol that it is not there.
abi::Result Unsupported(const char* symbol, std::atomic<bool>& said) {
  if (!said.exchange(true)) (void)std::fprintf(stderr, "EXPANSE_SIM: %s is not supported\n", symbol);
  return abi::kNotSupported;
}

// The legacy stream.
constexpr abi::Stream kLegacy = nullptr;

abi::Result ThenWait(abi::Result queued) { return queued == abi::kSuccess ? cuStreamSynchronize(kLegacy) : queued; }

}  // namespace

// driver_entry_points.inc has parameters without names. These name them p1, p2, ...: EXPANSE_EXPORT(symbol, types...).
#define EXPANSE_STRIP(...) __VA_ARGS__
#define EXPANSE_JOIN(a, b) EXPANSE_JOIN_(a, b)
#define EXPANSE_JOIN_(a, b) a##b
#define EXPANSE_EIGHTH(_0, _1, _2, _3, _4, _5, _6, n, ...) n
#define EXPANSE_COUNT(...) EXPANSE_EIGHTH(_ __VA_OPT__(, ) __VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define EXPANSE_NAMED(...) EXPANSE_JOIN(EXPANSE_NAMED_, EXPANSE_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define EXPANSE_NAMED_0()
#define EXPANSE_NAMED_1(a) a p1
#define EXPANSE_NAMED_2(a, b) a p1, b p2
#define EXPANSE_NAMED_3(a, b, c) a p1, b p2, c p3
#define EXPANSE_NAMED_4(a, b, c, d) a p1, b p2, c p3, d p4
#define EXPANSE_NAMED_5(a, b, c, d, e) a p1, b p2, c p3, d p4, e p5
#define EXPANSE_NAMED_6(a, b, c, d, e, f) a p1, b p2, c p3, d p4, e p5, f p6
#define EXPANSE_NAMES(...) EXPANSE_JOIN(EXPANSE_NAMES_, EXPANSE_COUNT(__VA_ARGS__))
#define EXPANSE_NAMES_0
#define EXPANSE_NAMES_1 , p1
#define EXPANSE_NAMES_2 , p1, p2
#define EXPANSE_NAMES_3 , p1, p2, p3
#define EXPANSE_NAMES_4 , p1, p2, p3, p4
#define EXPANSE_NAMES_5 , p1, p2, p3, p4, p5
#define EXPANSE_NAMES_6 , p1, p2, p3, p4, p5, p6
#define EXPANSE_EXPORT(member, symbol, ...)                                         \
  abi::Result symbol(EXPANSE_NAMED(__VA_ARGS__)) {                                  \
    return Forward(EntryPoint::member, &Driver::member EXPANSE_NAMES(__VA_ARGS__)); \
  }
#define EXPANSE_EXPORT_EXPANDED(...) EXPANSE_EXPORT(__VA_ARGS__)

#define EXPANSE_ENTRY_POINT(member, symbol, need, parameters) \
  EXPANSE_EXPORT_EXPANDED(member, symbol, EXPANSE_STRIP parameters)

extern "C" {

#include "vmm/driver_entry_points.inc"

#define EXPANSE_UNSUPPORTED(symbol)       \
  abi::Result symbol() {                  \
    static std::atomic<bool> said{false}; \
    return Unsupported(#symbol, said);    \
  }
#include "vmm/sim/shared/unsupported_symbols.inc"

abi::Result cuMemcpy(abi::DevicePtr dst, abi::DevicePtr src, size_t bytes) {
  return ThenWait(cuMemcpyAsync(dst, src, bytes, kLegacy));
}

abi::Result cuMemcpyHtoD_v2(abi::DevicePtr dst, const void* src, size_t bytes) {
  return ThenWait(cuMemcpyHtoDAsync_v2(dst, src, bytes, kLegacy));
}

abi::Result cuMemcpyDtoH_v2(void* dst, abi::DevicePtr src, size_t bytes) {
  return ThenWait(cuMemcpyDtoHAsync_v2(dst, src, bytes, kLegacy));
}

// Copies within a device and fills do not hold the host (CUDA Driver API, "API synchronization behavior").
abi::Result cuMemcpyDtoD_v2(abi::DevicePtr dst, abi::DevicePtr src, size_t bytes) {
  return cuMemcpyDtoDAsync_v2(dst, src, bytes, kLegacy);
}

abi::Result cuMemsetD8_v2(abi::DevicePtr dst, unsigned char value, size_t bytes) {
  return cuMemsetD8Async(dst, value, bytes, kLegacy);
}

}  // extern "C"

}  // namespace expanse

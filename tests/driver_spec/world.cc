#include "tests/driver_spec/world.h"

#include <string>

namespace expanse::driver_spec {

World::World(const Driver& driver, sim::Simulator* sim, Start start) : d(driver), simulator(sim), start_(start) {
  if (start_ == Start::kNothing) return;
  Need(d.init(0), "cuInit");
  Need(d.device_get_count(&devices), "cuDeviceGetCount");
  if (start_ == Start::kInitialised) return;

  const abi::AllocationProp prop = Prop();
  Need(d.mem_get_allocation_granularity(&g, &prop, abi::kGranularityRecommended), "cuMemGetAllocationGranularity");
  Need(d.primary_ctx_retain(&context, 0), "cuDevicePrimaryCtxRetain");
  Need(d.ctx_push_current(context), "cuCtxPushCurrent");
  Need(d.stream_create(&stream, abi::kStreamNonBlocking), "cuStreamCreate");
  Need(d.event_create(&event, abi::kEventDisableTiming), "cuEventCreate");
  base = Reserve(8 * g);
  one = Create(g);
  two = Create(2 * g);
  spare = Create(g);
  Need(Map(0, one), "cuMemMap");
  Need(Map(1, two, 2), "cuMemMap");
  Need(SetAccess(At(0), 3 * g), "cuMemSetAccess");
  one_mapped = two_mapped = reserved = true;
}

void World::Finish() {
  if (start_ != Start::kFull) return;
  CheckIntact();
  if (one_mapped) Need(d.mem_unmap(At(0), g), "cleanup: cuMemUnmap of the first mapping");
  if (two_mapped) Need(d.mem_unmap(At(1), 2 * g), "cleanup: cuMemUnmap of the second mapping");
  Need(d.mem_release(one), "cleanup: cuMemRelease of the first handle");
  Need(d.mem_release(two), "cleanup: cuMemRelease of the second handle");
  if (spare != 0) Need(d.mem_release(spare), "cleanup: cuMemRelease of the spare handle");
  if (reserved) Need(d.mem_address_free(base, 8 * g), "cleanup: cuMemAddressFree");
  Need(d.event_destroy(event), "cleanup: cuEventDestroy");
  Need(d.stream_destroy(stream), "cleanup: cuStreamDestroy");
  abi::Context top = nullptr;
  Need(d.ctx_pop_current(&top), "cleanup: cuCtxPopCurrent");
  NeedThat(top == context, "the context that was pushed is on top");
  Need(d.primary_ctx_release(0), "cleanup: cuDevicePrimaryCtxRelease");
}

void World::CheckIntact() {
  const abi::Location location{abi::kLocationDevice, 0};
  const struct {
    bool mapped;
    size_t granule;
  } places[] = {{one_mapped, 0}, {two_mapped, 1}, {two_mapped, 2}, {false, 3}, {false, 7}};
  for (const auto& place : places) {
    abi::u64 flags = ~abi::u64{0};
    const int result = d.mem_get_access(&flags, &location, At(place.granule));
    const std::string where = " at granule " + std::to_string(place.granule);
    if (place.mapped) {
      Need(result, ("still mapped" + where).c_str());
      NeedThat(flags == abi::kAccessReadWrite, ("still accessible" + where).c_str());
      NeedThat(SameBytes(At(place.granule), At(place.granule)), ("still holds what is written" + where).c_str());
    } else {
      NeedThat(result != abi::kSuccess, ("still not mapped" + where).c_str());
    }
  }
  abi::AllocationProp prop{};
  if (spare != 0) Need(d.mem_get_allocation_properties(&prop, spare), "the spare handle is still valid");
}

void World::Need(int result, const char* what) {
  if (result != abi::kSuccess) problems_.push_back(std::string(what) + " gave " + std::to_string(result));
}

void World::NeedThat(bool condition, const char* what) {
  if (!condition) problems_.push_back(std::string("expected: ") + what);
}

abi::AllocationProp World::Prop(int device) const {
  abi::AllocationProp prop{};
  prop.type = abi::kAllocationPinned;
  prop.location = {abi::kLocationDevice, device};
  return prop;
}

int World::SetAccess(abi::DevicePtr address, size_t size, int flags, int device) {
  const abi::AccessDesc desc{{abi::kLocationDevice, device}, flags};
  return d.mem_set_access(address, size, &desc, 1);
}

int World::Map(size_t granule, abi::MemHandle handle, size_t granules) {
  return d.mem_map(At(granule), granules * g, 0, handle, 0);
}

abi::DevicePtr World::Reserve(size_t size, abi::DevicePtr hint) {
  abi::DevicePtr address = 0;
  Need(d.mem_address_reserve(&address, size, 0, hint, 0), "cuMemAddressReserve");
  return address;
}

abi::MemHandle World::Create(size_t size) {
  const abi::AllocationProp prop = Prop();
  abi::MemHandle handle = 0;
  Need(d.mem_create(&handle, size, &prop, 0), "cuMemCreate");
  return handle;
}

size_t World::FreeMemory() {
  size_t free = 0;
  size_t total = 0;
  Need(d.mem_get_info(&free, &total), "cuMemGetInfo");
  return free;
}

bool World::ReserveNeighbours(abi::DevicePtr* first, abi::DevicePtr* second) {
  // A range that was free as a whole is free in halves.
  const abi::DevicePtr whole = Reserve(2 * g);
  Need(d.mem_address_free(whole, 2 * g), "cuMemAddressFree");
  *first = Reserve(g, whole);
  *second = Reserve(g, whole + g);
  if (*second == *first + g) return true;
  Need(d.mem_address_free(*first, g), "cuMemAddressFree");
  Need(d.mem_address_free(*second, g), "cuMemAddressFree");
  return false;
}

bool World::SameBytes(abi::DevicePtr write, abi::DevicePtr read) {
  constexpr size_t kSize = 64;
  static unsigned char value = 0;
  ++value;
  unsigned char back[kSize] = {};
  Need(d.memset_d8_async(write, value, kSize, stream), "cuMemsetD8Async");
  Need(d.memcpy_dtoh_async(back, read, kSize, stream), "cuMemcpyDtoHAsync");
  Need(d.stream_synchronize(stream), "cuStreamSynchronize");
  if (simulator != nullptr && simulator->config().memory == sim::MemoryMode::kAccounting) return true;
  for (const unsigned char byte : back) {
    if (byte != value) return false;
  }
  return true;
}

}  // namespace expanse::driver_spec

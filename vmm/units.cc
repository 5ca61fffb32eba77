#include "vmm/units.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace expanse {

std::string ToString(Bytes size) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (size < KiB(1)) return absl::StrCat(size.count(), " bytes");
  double scaled = static_cast<double>(size.count()) / 1024;
  int unit = 0;
  while (scaled >= 1024 && unit < 5) {
    scaled /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.2f %s (%d bytes)", scaled, kUnits[unit], size.count());
}

std::string ToString(ChunkCount count) {
  return absl::StrCat(count.count(), count.count() == 1 ? " chunk" : " chunks");
}

std::string ToString(DeviceAddress address) { return absl::StrFormat("0x%x", address.value()); }

std::string ToString(AddressRange range) {
  return absl::StrCat("[", ToString(range.begin), ", ", ToString(range.end()), ")");
}

}  // namespace expanse

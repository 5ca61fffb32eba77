#include "vmm/sim/shared/environment.h"

#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace expanse::sim {
namespace {

// What a value was expected to be, if it is not that.
using Error = std::string;
constexpr uint64_t kMaxDevices = 64;

// "64KiB", "16GiB", "2GB", "512" (bytes).
Error ParseSize(absl::string_view text, Bytes& size) {
  struct Unit {
    absl::string_view suffix;
    uint64_t bytes;
  };
  static constexpr Unit kUnits[] = {{"KiB", 1ULL << 10},
                                    {"MiB", 1ULL << 20},
                                    {"GiB", 1ULL << 30},
                                    {"TiB", 1ULL << 40},
                                    {"KB", 1000},
                                    {"MB", 1000 * 1000},
                                    {"GB", 1000000000},
                                    {"TB", 1000000000000ULL},
                                    {"B", 1}};
  uint64_t unit = 1;
  for (const Unit& u : kUnits) {
    if (absl::ConsumeSuffix(&text, u.suffix)) {
      unit = u.bytes;
      break;
    }
  }
  uint64_t count = 0;
  if (!absl::SimpleAtoi(text, &count) || count > UINT64_MAX / unit) return "a size such as 512, 64KiB or 16GiB";
  size = Bytes(count * unit);
  return "";
}

Error ParseNumber(absl::string_view text, uint64_t min, uint64_t max, uint64_t& number) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
    return absl::StrCat("a whole number from ", min, " to ", max);
  }
  number = value;
  return "";
}

Error ParseSwitch(absl::string_view text, bool& on) {
  if (text != "0" && text != "1") return "0 or 1";
  on = text == "1";
  return "";
}

Error ParseResult(absl::string_view text, abi::Result likely, abi::Result other, abi::Result& result) {
  for (const abi::Result choice : {likely, other}) {
    if (text != absl::StrCat(static_cast<int>(choice))) continue;
    result = choice;
    return "";
  }
  return absl::StrCat(static_cast<int>(likely), " or ", static_cast<int>(other));
}

Error ParseCosts(absl::string_view text, CostModel& costs) {
  const std::string name(text);
  absl::StatusOr<CostModel> model = CostModel::Preset(name);
  if (!model.ok()) {
    std::ifstream file(name);
    if (!file) return absl::StrCat("a readable cost file or one of ", absl::StrJoin(CostModel::PresetNames(), ", "));
    const std::string lines((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    model = CostModel::Parse(lines, name);
    if (!model.ok()) return absl::StrCat("a cost file without errors (", model.status().message(), ")");
  }
  costs = *std::move(model);
  return "";
}

struct Key {
  absl::string_view name;
  std::function<Error(absl::string_view)> parse;
};

// The devices are made last, all alike.
struct DeviceSettings {
  uint64_t count = 1;
  DeviceConfig device;
};

std::vector<Key> Keys(Environment& environment, DeviceSettings& devices) {
  Config& config = environment.config;
  Quirks& quirks = config.quirks;
  const auto size = [](Bytes& into) { return [&into](absl::string_view v) { return ParseSize(v, into); }; };
  const auto on = [](bool& into) { return [&into](absl::string_view v) { return ParseSwitch(v, into); }; };
  const auto result = [](abi::Result& into, abi::Result other) {
    return [&into, likely = into, other](absl::string_view v) { return ParseResult(v, likely, other, into); };
  };
  return {
      {"devices", [&](absl::string_view v) { return ParseNumber(v, 1, kMaxDevices, devices.count); }},
      {"memory", size(devices.device.total_memory)},
      {"granularity", size(devices.device.granularity)},
      {"costs", [&](absl::string_view v) { return ParseCosts(v, config.costs); }},
      {"accounting",
       [&](absl::string_view v) {
         bool accounting = false;
         const Error error = ParseSwitch(v, accounting);
         config.memory = accounting ? MemoryMode::kAccounting : MemoryMode::kReal;
         return error;
       }},
      {"clock", on(config.calls_advance_clock)},
      {"poison", on(config.poison)},
      {"strict_host_fault", on(config.strict_host_fault)},
      {"address_space", size(config.address_space)},
      {"max_handles", [&](absl::string_view v) { return ParseNumber(v, 1, UINT64_MAX, config.max_handles); }},
      {"max_mappings", [&](absl::string_view v) { return ParseNumber(v, 1, UINT64_MAX, config.max_mappings); }},
      {"driver_version",
       [&](absl::string_view v) {
         uint64_t version = 0;
         const Error error = ParseNumber(v, 10020, 99990, version);
         config.driver_version = static_cast<int>(version);
         return error;
       }},
      {"report", on(environment.report)},
      {"offset_map_error", result(quirks.offset_map_error, abi::kNotSupported)},
      {"oversize_map_error", result(quirks.oversize_map_error, abi::kInvalidValue)},
      {"unmap_hole_is_partial", on(quirks.unmap_hole_is_partial)},
      {"unmap_across_reservations", on(quirks.unmap_across_reservations)},
      {"set_access_subrange", on(quirks.set_access_subrange)},
      {"address_free_live", on(quirks.address_free_live)},
      {"vmm_needs_context", on(quirks.vmm_needs_context)},
      {"peer_error", result(quirks.peer_error, abi::kPeerAccessUnsupported)},
      {"honour_address_hints", on(quirks.honour_address_hints)},
      {"context_free_calls_see_sticky", on(quirks.context_free_calls_see_sticky)},
      {"release_lag", on(quirks.release_lag)},
      {"alloc_zero_succeeds", on(quirks.alloc_zero_succeeds)},
  };
}

}  // namespace

absl::StatusOr<Environment> ParseEnvironment(std::string_view text) {
  Environment environment;
  DeviceSettings devices;
  const std::vector<Key> keys = Keys(environment, devices);
  const absl::string_view all(text.data(), text.size());
  for (const absl::string_view pair : absl::StrSplit(all, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    bool known = false;
    for (const Key& key : keys) {
      if (key.name != name) continue;
      known = true;
      if (const Error expected = key.parse(value); !expected.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(name, "=\"", value, "\" should be ", expected));
      }
    }
    if (!known) {
      const auto append_name = [](std::string* out, const Key& key) { absl::StrAppend(out, key.name); };
      return absl::InvalidArgumentError(
          absl::StrCat("unknown key \"", name, "\"; there are ", absl::StrJoin(keys, ", ", append_name)));
    }
  }
  environment.config.devices.assign(devices.count, devices.device);
  return environment;
}

}  // namespace expanse::sim

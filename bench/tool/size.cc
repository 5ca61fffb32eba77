#include "bench/tool/size.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace expanse::tool {
namespace {

constexpr double kTooLarge = 9.2e18;  // bytes; keeps sums of a few sizes within 64 bits

struct Unit {
  const char* name;
  double bytes;
};
constexpr Unit kUnits[] = {
    {"kib", 1024.0},
    {"mib", 1048576.0},
    {"gib", 1073741824.0},
    {"tib", 1099511627776.0},
    {"pib", 1125899906842624.0},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"tb", 1e12},
    {"pb", 1e15},
    {"b", 1.0},
};

// Digits with at most one point among them: no sign, exponent, infinity or hexadecimal.
bool ParseDecimal(absl::string_view text, double* value) {
  if (text.empty() || text.find_first_not_of("0123456789.") != absl::string_view::npos) return false;
  return absl::SimpleAtod(text, value) && std::isfinite(*value);
}

}  // namespace

absl::StatusOr<Bytes> ParseSize(const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  absl::string_view number = lower;
  double unit = 1;
  for (const Unit& candidate : kUnits) {
    if (absl::ConsumeSuffix(&number, candidate.name)) {
      unit = candidate.bytes;
      break;
    }
  }
  // Whole bytes do not pass through a double, which would round large ones.
  uint64_t exact = 0;
  const absl::string_view digits = absl::StripTrailingAsciiWhitespace(number);
  double value = 0;
  if (!ParseDecimal(digits, &value)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is no size; expected a number and B, KiB, MiB, GiB, TiB, PiB, KB, MB, GB, TB or PB"));
  }
  if (value * unit >= kTooLarge) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is too large a size"));
  if (absl::SimpleAtoi(digits, &exact)) {
    exact *= static_cast<uint64_t>(unit);
  } else {
    exact = static_cast<uint64_t>(value * unit);
  }
  if (exact == 0) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no size: it is less than a byte"));
  return Bytes(exact);
}

Bytes RelativeSize::Of(Bytes whole) const {
  if (multiple == 0) return bytes;
  const double size = std::min(std::ceil(multiple * static_cast<double>(whole.count())), kTooLarge);
  return std::max(RoundUp(Bytes(static_cast<uint64_t>(size)), MiB(2)), MiB(2));
}

absl::StatusOr<RelativeSize> ParseRelativeSize(const std::string& text) {
  RelativeSize size;
  absl::string_view number = text;
  if (absl::ConsumeSuffix(&number, "x")) {
    if (!ParseDecimal(number, &size.multiple) || size.multiple <= 0 || size.multiple > 1e6) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is no multiple; expected a number above 0 and x, as 1.01x"));
    }
    return size;
  }
  absl::StatusOr<Bytes> bytes = ParseSize(text);
  if (!bytes.ok()) return bytes.status();
  size.bytes = *bytes;
  return size;
}

absl::StatusOr<uint64_t> ParseCount(const std::string& text) {
  uint64_t value = 0;
  if (text.find_first_not_of("0123456789") != std::string::npos || !absl::SimpleAtoi(text, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no whole number from 0 to 18446744073709551615"));
  }
  return value;
}

}  // namespace expanse::tool

// Whether text that a program gave can be written into JSON and read by everybody.

#ifndef EXPANSE_CORE_UTF8_H_
#define EXPANSE_CORE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace expanse {

// Whether `text` is UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. O(size).
[[nodiscard]] inline bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int following = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4) return false;
    uint32_t point = lead & (0x3fU >> following);
    for (int k = 0; k < following; ++k, ++i) {
      if (i == text.size() || (static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U) return false;
      point = point << 6U | (static_cast<unsigned char>(text[i]) & 0x3fU);
    }
    constexpr uint32_t kFirstOfLength[] = {0, 0x80, 0x800, 0x10000};
    if (point < kFirstOfLength[following] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
  }
  return true;
}

}  // namespace expanse

#endif  // EXPANSE_CORE_UTF8_H_

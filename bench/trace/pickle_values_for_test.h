// Writes pickles in tests: each function gives the opcodes that leave one value on the stack.

#ifndef EXPANSE_BENCH_TRACE_PICKLE_VALUES_FOR_TEST_H_
#define EXPANSE_BENCH_TRACE_PICKLE_VALUES_FOR_TEST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace expanse::bench {

inline std::string PickledInt(int64_t value) {
  std::string code("\x8a\x08", 2);
  for (int i = 0; i < 8; ++i) code += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  return code;
}

// Of at most 255 bytes.
inline std::string PickledString(const std::string& value) {
  return std::string("\x8c") + static_cast<char>(value.size()) + value;
}

inline std::string PickledList(const std::vector<std::string>& items) {
  std::string code = "](";
  for (const std::string& item : items) code += item;
  return code + "e";
}

inline std::string PickledDict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string code = "}(";
  for (const auto& [key, value] : entries) code += PickledString(key) + value;
  return code + "u";
}

// A whole pickle of protocol 4.
inline std::string Pickled(const std::string& value) { return std::string("\x80\x04") + value + "."; }

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_PICKLE_VALUES_FOR_TEST_H_

// Text tables, and figures as people read them.

#ifndef EXPANSE_BENCH_REPLAY_TABLE_H_
#define EXPANSE_BENCH_REPLAY_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/units.h"

namespace expanse::bench {

// Columns as wide as their widest cell; the first column is aligned left, the others right, as figures are. A header
// may have several lines, separated by '\n'. Widths count UTF-8 characters.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}

  // One cell for each column of the header.
  void AddRow(std::vector<std::string> cells);
  // Ends with a newline. O(cells).
  [[nodiscard]] std::string ToString() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// What stands for an absent figure.
inline constexpr const char* kAbsent = "-";

[[nodiscard]] std::string HumanBytes(Bytes size);               // "61.82 GiB", "512 B"
[[nodiscard]] std::string HumanCount(uint64_t count);           // "132,809"
[[nodiscard]] std::string HumanMicroseconds(double us);         // "0.59 s", "15.2 ms", "7.0 us"
[[nodiscard]] std::string HumanRatio(Bytes part, Bytes whole);  // "1.0045"; absent where `whole` is zero

[[nodiscard]] std::string HumanBytes(std::optional<Bytes> size);
[[nodiscard]] std::string HumanCount(std::optional<uint64_t> count);
[[nodiscard]] std::string HumanMicroseconds(std::optional<double> us);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_TABLE_H_

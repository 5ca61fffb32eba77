// The bytes of a pickle, taken one opcode and one argument after the other.

#ifndef EXPANSE_BENCH_TRACE_PICKLE_INPUT_H_
#define EXPANSE_BENCH_TRACE_PICKLE_INPUT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace expanse::bench {

// The value of at most 8 bytes, the lowest first.
[[nodiscard]] uint64_t LittleEndian(absl::string_view bytes);

// Every length is checked against the bytes that are left. Errors are kInvalidArgument, and name the file and the
// offset of the opcode that was taken last.
class PickleInput {
 public:
  PickleInput(absl::string_view data, absl::string_view name) : data_(data), name_(name) {}

  [[nodiscard]] absl::Status TakeOpcode(uint8_t& opcode);
  // An argument of `width` bytes, little-endian.
  [[nodiscard]] absl::Status TakeUnsigned(int width, uint64_t& value);
  // A length of that width, and the offset of as many bytes, which are passed over.
  [[nodiscard]] absl::Status TakeSpan(int length_width, uint64_t& offset, uint64_t& length);

  [[nodiscard]] absl::string_view data() const { return data_; }
  [[nodiscard]] size_t position() const { return position_; }
  [[nodiscard]] size_t left() const { return data_.size() - position_; }
  [[nodiscard]] absl::Status Error(absl::string_view problem) const;

 private:
  const absl::string_view data_;
  const absl::string_view name_;
  size_t position_ = 0;
  size_t opcode_at_ = 0;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_PICKLE_INPUT_H_

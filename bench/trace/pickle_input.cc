#include "bench/trace/pickle_input.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/trace/pickle_opcodes.h"

namespace expanse::bench {

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

absl::Status PickleInput::TakeOpcode(uint8_t& opcode) {
  opcode_at_ = position_;
  if (left() == 0) return Error("the file stops short, expected another opcode");
  opcode = static_cast<uint8_t>(data_[position_++]);
  if (opcode_at_ == 0 && static_cast<PickleOpcode>(opcode) != PickleOpcode::kProto) {
    return Error("expected the opcode PROTO (0x80) of protocols 2 to 5");
  }
  return absl::OkStatus();
}

absl::Status PickleInput::TakeUnsigned(int width, uint64_t& value) {
  const auto bytes = static_cast<size_t>(width);
  if (left() < bytes) return Error("the file stops within the opcode's argument");
  value = LittleEndian(data_.substr(position_, bytes));
  position_ += bytes;
  return absl::OkStatus();
}

absl::Status PickleInput::TakeSpan(int length_width, uint64_t& offset, uint64_t& length) {
  const absl::Status status = TakeUnsigned(length_width, length);
  if (!status.ok()) return status;
  if (length > left()) {
    return Error(absl::StrCat("a length of ", length, " bytes, expected at most the ", left(), " left"));
  }
  offset = position_;
  position_ += length;
  return absl::OkStatus();
}

absl::Status PickleInput::Error(absl::string_view problem) const {
  std::string at;
  if (opcode_at_ < data_.size()) {
    at = absl::StrCat(" (opcode 0x", absl::Hex(static_cast<uint8_t>(data_[opcode_at_]), absl::kZeroPad2), ")");
  }
  return absl::InvalidArgumentError(absl::StrCat(name_, ": byte ", opcode_at_, at, ": ", problem));
}

}  // namespace expanse::bench

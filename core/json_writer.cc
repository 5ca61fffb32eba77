#include "core/json_writer.h"

#include "absl/strings/str_cat.h"

namespace expanse {

void JsonWriter::BeforeValue() {
  if (comma_) text_ += ',';
  comma_ = true;
}

void JsonWriter::Begin(char open) {
  BeforeValue();
  text_ += open;
  comma_ = false;
}

void JsonWriter::End(char close) {
  text_ += close;
  comma_ = true;
}

void JsonWriter::Key(std::string_view key) {
  BeforeValue();
  Quoted(key);
  text_ += ':';
  comma_ = false;
}

void JsonWriter::Number(uint64_t value) {
  BeforeValue();
  absl::StrAppend(&text_, value);
}

void JsonWriter::Null() {
  BeforeValue();
  text_ += "null";
}

void JsonWriter::Bool(bool value) {
  BeforeValue();
  text_ += value ? "true" : "false";
}

void JsonWriter::String(std::string_view value) {
  BeforeValue();
  Quoted(value);
}

void JsonWriter::Quoted(std::string_view value) {
  text_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      absl::StrAppend(&text_, "\\u", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad4));
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

void JsonWriter::Add(std::string_view key, uint64_t value) {
  Key(key);
  Number(value);
}

void JsonWriter::Add(std::string_view key, std::optional<uint64_t> value) {
  Key(key);
  if (value) {
    Number(*value);
  } else {
    Null();
  }
}

void JsonWriter::Add(std::string_view key, std::string_view value) {
  Key(key);
  String(value);
}

void JsonWriter::AddBool(std::string_view key, bool value) {
  Key(key);
  Bool(value);
}

}  // namespace expanse

// Writes JSON text.

#ifndef EXPANSE_CORE_JSON_WRITER_H_
#define EXPANSE_CORE_JSON_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace expanse {

// RFC 8259, without blanks. A key stands before each value of an object; commas come by themselves. Not thread-safe.
class JsonWriter {
 public:
  void BeginObject() { Begin('{'); }
  void BeginArray() { Begin('['); }
  void EndObject() { End('}'); }
  void EndArray() { End(']'); }
  void Key(std::string_view key);

  void Number(uint64_t value);
  void Null();
  void Bool(bool value);
  // UTF-8; control characters, quotes and backslashes are escaped.
  void String(std::string_view value);

  // A key and its value.
  void Add(std::string_view key, uint64_t value);
  void Add(std::string_view key, std::optional<uint64_t> value);
  void Add(std::string_view key, std::string_view value);
  void Add(std::string_view key, const char* value) { Add(key, std::string_view(value)); }
  void AddBool(std::string_view key, bool value);

  // Everything that was begun must have ended.
  [[nodiscard]] std::string Finish() && { return std::move(text_); }

 private:
  void Begin(char open);
  void End(char close);
  void BeforeValue();
  void Quoted(std::string_view value);

  std::string text_;
  bool comma_ = false;  // whether the next value or key needs one before it
};

}  // namespace expanse

#endif  // EXPANSE_CORE_JSON_WRITER_H_

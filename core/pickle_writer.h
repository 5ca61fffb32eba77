// Writes Python pickles of plain data.

#ifndef EXPANSE_CORE_PICKLE_WRITER_H_
#define EXPANSE_CORE_PICKLE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace expanse {

// A pickle of protocol 2 (PEP 307; the opcodes are described in CPython's Lib/pickletools.py), out of dicts, lists,
// pairs, whole numbers, floats, strings, booleans and None. Nothing in it imports or calls anything.
//
//   PickleWriter pickle;
//   pickle.BeginDict();
//   pickle.Key("size");
//   pickle.Int(512);
//   pickle.End();
//   std::string bytes = std::move(pickle).Finish();
//
// A dict takes a key before each value; a list any number of values. Not thread-safe.
class PickleWriter {
 public:
  PickleWriter();

  void BeginDict();
  void BeginList();
  // Ends the innermost dict or list.
  void End();
  void Key(std::string_view key) { Text(key); }

  void Int(int64_t value);
  void Float(double value);
  // UTF-8.
  void String(std::string_view value);
  void Bool(bool value);
  void None();
  // A tuple of two numbers.
  void Pair(int64_t first, int64_t second);

  // Every dict and list must have ended.
  [[nodiscard]] std::string Finish() &&;

 private:
  // Readers push what lies between two marks onto their stack before they store it, so long containers are given in
  // batches, as Python's own writer does.
  static constexpr int kBatch = 1000;
  struct Open {
    char store;  // the opcode that stores a batch
    int values = 0;
  };

  void Text(std::string_view text);
  void Number(int64_t value);
  // After each value.
  void Stored();

  std::string bytes_;
  std::vector<Open> open_;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_PICKLE_WRITER_H_

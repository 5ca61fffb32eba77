// Reads dicts of a pickle whose keys are known, and says where in the file something is not as expected.

#ifndef EXPANSE_BENCH_TRACE_PICKLE_DICT_READER_H_
#define EXPANSE_BENCH_TRACE_PICKLE_DICT_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/trace/pickle.h"
#include "bench/trace/unknown_names.h"

namespace expanse::bench {

// Where in the structure a value is, as "segments[3].blocks". Called for messages only.
using PicklePlace = absl::FunctionRef<std::string()>;

// One key of a dict that is looked for, and what was found.
struct PickleField {
  absl::string_view key;
  std::optional<PickleValue> value = std::nullopt;
};

// Errors are kInvalidArgument, and name the file, the place, the value and what was expected.
class PickleDictReader {
 public:
  using Place = PicklePlace;
  using Field = PickleField;

  // Reads no more entries than a pickle of that size can hold, so that a file whose lists share one another costs no
  // more than an honest one. `ignored` are keys that are known and not looked for; it and `name` must outlive this.
  PickleDictReader(size_t pickle_size, absl::string_view name, absl::Span<const absl::string_view> ignored)
      : budget_(pickle_size), name_(name), ignored_(ignored) {}

  // Fills in the fields that the dict has; of a key that was set twice the last counts, as in Python.
  [[nodiscard]] absl::Status Read(PickleValue dict, Place place, absl::Span<Field> fields);
  // The field is a list, whose items are about to be read.
  [[nodiscard]] absl::Status WantList(const Field& field, Place place);
  // The field, which is `place`'s, is a whole number or a string.
  [[nodiscard]] absl::Status Want(const Field& field, Place place, uint64_t least, uint64_t& value) const;
  [[nodiscard]] absl::Status Want(const Field& field, Place place, absl::string_view& text) const;

  // Entries are about to be read that take so many bytes of an honest file at least: a list's item one, a dict's key
  // and value three.
  [[nodiscard]] absl::Status Charge(uint64_t bytes);
  [[nodiscard]] absl::Status Error(Place place, absl::string_view problem) const;
  // Keys that were neither looked for nor ignored.
  [[nodiscard]] const UnknownNames& unknown_keys() const { return unknown_keys_; }

 private:
  uint64_t budget_;
  const absl::string_view name_;
  const absl::Span<const absl::string_view> ignored_;
  UnknownNames unknown_keys_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_PICKLE_DICT_READER_H_

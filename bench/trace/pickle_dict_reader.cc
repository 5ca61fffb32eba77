#include "bench/trace/pickle_dict_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace expanse::bench {

absl::Status PickleDictReader::Read(PickleValue dict, Place place, absl::Span<Field> fields) {
  if (!dict.is_dict()) return Error(place, absl::StrCat(dict.Describe(), ", expected a dict"));
  const absl::Status status = Charge(uint64_t{3} * dict.size());
  if (!status.ok()) return status;
  for (PickleCursor items(dict); items.HasNext();) {
    const PickleValue key = items.Next();
    const PickleValue value = items.Next();
    const absl::string_view text = key.AsString().value_or(absl::string_view());
    const auto field = std::find_if(fields.begin(), fields.end(), [text](const Field& f) { return f.key == text; });
    if (field != fields.end()) {
      field->value = value;
    } else if (std::find(ignored_.begin(), ignored_.end(), text) == ignored_.end()) {
      unknown_keys_.Add(key);
    }
  }
  return absl::OkStatus();
}

absl::Status PickleDictReader::WantList(const Field& field, Place place) {
  if (!field.value.has_value()) return Error(place, "missing, expected a list");
  if (!field.value->is_sequence()) return Error(place, absl::StrCat(field.value->Describe(), ", expected a list"));
  return Charge(field.value->size());
}

absl::Status PickleDictReader::Want(const Field& field, Place place, uint64_t least, uint64_t& value) const {
  const auto at = [&] { return absl::StrCat(place(), ".", field.key); };
  const std::string expected = absl::StrCat(", expected a whole number of at least ", least);
  if (!field.value.has_value()) return Error(at, absl::StrCat("missing", expected));
  const std::optional<uint64_t> number = field.value->AsUint64();
  if (!number.has_value() || *number < least) return Error(at, absl::StrCat(field.value->Describe(), expected));
  value = *number;
  return absl::OkStatus();
}

absl::Status PickleDictReader::Want(const Field& field, Place place, absl::string_view& text) const {
  const auto at = [&] { return absl::StrCat(place(), ".", field.key); };
  if (!field.value.has_value()) return Error(at, "missing, expected a string");
  const std::optional<absl::string_view> found = field.value->AsString();
  if (!found.has_value()) return Error(at, absl::StrCat(field.value->Describe(), ", expected a string"));
  text = *found;
  return absl::OkStatus();
}

absl::Status PickleDictReader::Charge(uint64_t bytes) {
  if (bytes > budget_) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": more entries than the file has room for: its lists share one another"));
  }
  budget_ -= bytes;
  return absl::OkStatus();
}

absl::Status PickleDictReader::Error(Place place, absl::string_view problem) const {
  return absl::InvalidArgumentError(absl::StrCat(name_, ": ", place(), ": ", problem));
}

}  // namespace expanse::bench

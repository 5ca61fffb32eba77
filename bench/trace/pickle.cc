#include "bench/trace/pickle.h"

#include "absl/strings/str_cat.h"
#include "bench/trace/pickle_input.h"
#include "bench/trace/pickle_machine.h"
#include "bench/trace/quote.h"

namespace expanse::bench {

PickleKind PickleValue::kind() const { return pickle_->nodes_[node_].kind; }

std::optional<bool> PickleValue::AsBool() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != PickleKind::kBool) return std::nullopt;
  return node.payload != 0;
}

std::optional<int64_t> PickleValue::AsInt64() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != PickleKind::kInt) return std::nullopt;
  return static_cast<int64_t>(node.payload);
}

std::optional<uint64_t> PickleValue::AsUint64() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind == PickleKind::kInt) {
    if (static_cast<int64_t>(node.payload) < 0) return std::nullopt;
    return node.payload;
  }
  // From 2^63 to 2^64 - 1 an integer takes nine bytes, little-endian, the last of them the sign's and zero.
  if (node.kind != PickleKind::kBigInt || node.count != 9 || pickle_->data_[node.payload + 8] != '\0')
    return std::nullopt;
  return LittleEndian(pickle_->data_.substr(node.payload, 8));
}

std::optional<double> PickleValue::AsDouble() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != PickleKind::kFloat) return std::nullopt;
  double value;
  static_assert(sizeof value == sizeof node.payload);
  __builtin_memcpy(&value, &node.payload, sizeof value);
  return value;
}

std::optional<absl::string_view> PickleValue::AsString() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  if (node.kind != PickleKind::kString) return std::nullopt;
  return pickle_->data_.substr(node.payload, node.count);
}

uint32_t PickleValue::size() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  switch (node.kind) {
    case PickleKind::kList:
    case PickleKind::kTuple:
    case PickleKind::kSet:
    case PickleKind::kDict:
      return node.count;
    default:
      return 0;
  }
}

std::string PickleValue::Describe() const {
  const Pickle::Node& node = pickle_->nodes_[node_];
  switch (node.kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return node.payload != 0 ? "True" : "False";
    case PickleKind::kInt:
      return absl::StrCat(*AsInt64());
    case PickleKind::kBigInt:
      return absl::StrCat("an integer of ", node.count, " bytes");
    case PickleKind::kFloat:
      return absl::StrCat(*AsDouble());
    case PickleKind::kString:
      return Quote(*AsString());
    case PickleKind::kBytes:
      return absl::StrCat(node.count, " bytes");
    case PickleKind::kList:
      return absl::StrCat("a list of ", node.count);
    case PickleKind::kTuple:
      return absl::StrCat("a tuple of ", node.count);
    case PickleKind::kSet:
      return absl::StrCat("a set of ", node.count);
    case PickleKind::kDict:
      return absl::StrCat("a dict of ", node.count);
  }
  return "";
}

PickleCursor::PickleCursor(PickleValue container) : pickle_(container.pickle_), link_(0) {
  if (container.size() > 0) link_ = static_cast<uint32_t>(pickle_->nodes_[container.node_].payload >> 32);
}

PickleValue PickleCursor::Next() {
  const Pickle::Link& link = pickle_->links_[link_];
  link_ = link.next;
  return PickleValue(pickle_, link.node);
}

absl::StatusOr<Pickle> Pickle::Parse(absl::string_view data, absl::string_view name) {
  return PickleMachine(data, name).Run();
}

bool Pickle::LooksLikePickle(absl::string_view data) {
  // The opcode PROTO and its argument; text in any encoding does not begin like this.
  return data.size() >= 2 && data[0] == '\x80' && data[1] >= 2 && data[1] < 32;
}

}  // namespace expanse::bench

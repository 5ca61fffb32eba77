#include "bench/trace/pickle_machine.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/trace/pickle_opcodes.h"

namespace expanse::bench {
namespace {

// The two's complement value of 1 to 8 bytes.
uint64_t SignExtended(uint64_t value, uint64_t bytes) {
  if (bytes == 0 || bytes == 8) return value;
  const uint64_t sign = uint64_t{1} << (bytes * 8 - 1);
  return (value ^ sign) - sign;
}

}  // namespace

absl::StatusOr<Pickle> PickleMachine::Run() {
  if (input_.data().size() >= std::numeric_limits<uint32_t>::max()) {
    return Error(absl::StrCat("a pickle of ", input_.data().size(), " bytes, expected less than 4 GiB"));
  }
  pickle_.links_.Add({0, 0});  // link 0 stands for "none"
  bool done = false;
  while (!done) {
    uint8_t opcode = 0;
    absl::Status status = input_.TakeOpcode(opcode);
    if (status.ok()) status = Step(opcode, done);
    if (!status.ok()) return status;
  }
  pickle_.root_ = stack_.back();
  pickle_.consumed_ = input_.position();
  return std::move(pickle_);
}

absl::Status PickleMachine::Step(uint8_t opcode, bool& done) {
  using Op = PickleOpcode;
  const auto op = static_cast<Op>(opcode);
  uint64_t value = 0;
  absl::Status status;
  switch (op) {
    case Op::kProto:
      status = input_.TakeUnsigned(1, value);
      if (status.ok() && (value < 2 || value > 5)) return Error(absl::StrCat("protocol ", value, ", expected 2 to 5"));
      return status;
    case Op::kFrame:
      status = input_.TakeUnsigned(8, value);
      if (status.ok() && value > input_.left()) {
        return Error(absl::StrCat("a frame of ", value, " bytes, expected at most the ", input_.left(), " left"));
      }
      return status;
    case Op::kStop:
      done = true;
      return Need(1);

    case Op::kNone:
      Push(PickleKind::kNone);
      return status;
    case Op::kNewTrue:
    case Op::kNewFalse:
      Push(PickleKind::kBool, op == Op::kNewTrue ? 1 : 0);
      return status;
    case Op::kBinInt:
      return PushInt(4, /*sign=*/true);
    case Op::kBinInt1:
      return PushInt(1, /*sign=*/false);
    case Op::kBinInt2:
      return PushInt(2, /*sign=*/false);
    case Op::kLong1:
      return PushLong(1);
    case Op::kLong4:
      return PushLong(4);
    case Op::kBinFloat:
      return PushFloat();
    case Op::kShortBinUnicode:
    case Op::kShortBinString:
      return PushSpan(PickleKind::kString, 1);
    case Op::kBinUnicode:
    case Op::kBinString:
      return PushSpan(PickleKind::kString, 4);
    case Op::kBinUnicode8:
      return PushSpan(PickleKind::kString, 8);
    case Op::kShortBinBytes:
      return PushSpan(PickleKind::kBytes, 1);
    case Op::kBinBytes:
      return PushSpan(PickleKind::kBytes, 4);
    case Op::kBinBytes8:
    case Op::kByteArray8:
      return PushSpan(PickleKind::kBytes, 8);

    case Op::kEmptyList:
      Push(PickleKind::kList);
      return status;
    case Op::kEmptyDict:
      Push(PickleKind::kDict);
      return status;
    case Op::kEmptySet:
      Push(PickleKind::kSet);
      return status;
    case Op::kEmptyTuple:
      Push(PickleKind::kTuple);
      return status;
    case Op::kTuple1:
    case Op::kTuple2:
    case Op::kTuple3: {
      const size_t items = opcode - static_cast<size_t>(Op::kTuple1) + 1;
      status = Need(items);
      if (status.ok()) PushContainer(PickleKind::kTuple, stack_.size() - items);
      return status;
    }
    case Op::kTuple:
    case Op::kFrozenSet: {
      size_t from = 0;
      status = TakeMark(from);
      if (status.ok()) PushContainer(op == Op::kTuple ? PickleKind::kTuple : PickleKind::kSet, from);
      return status;
    }
    case Op::kAppend:
      return Extend(PickleKind::kList, 1);
    case Op::kAppends:
      return ExtendFromMark(PickleKind::kList);
    case Op::kSetItem:
      return Extend(PickleKind::kDict, 2);
    case Op::kSetItems:
      return ExtendFromMark(PickleKind::kDict);
    case Op::kAddItems:
      return ExtendFromMark(PickleKind::kSet);

    case Op::kMark:
      marks_.push_back(static_cast<uint32_t>(stack_.size()));
      return status;
    case Op::kPop:
      // As Python does: where nothing lies above the mark, the mark itself goes.
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
        return status;
      }
      status = Need(1);
      if (status.ok()) stack_.pop_back();
      return status;
    case Op::kPopMark: {
      size_t from = 0;
      status = TakeMark(from);
      if (status.ok()) stack_.resize(from);
      return status;
    }
    case Op::kDup:
      status = Need(1);
      if (status.ok()) stack_.push_back(stack_.back());
      return status;

    case Op::kMemoize:
      return Put(memoized_);
    case Op::kBinPut:
    case Op::kLongBinPut:
      status = input_.TakeUnsigned(op == Op::kBinPut ? 1 : 4, value);
      return status.ok() ? Put(value) : status;
    case Op::kBinGet:
      return Get(1);
    case Op::kLongBinGet:
      return Get(4);
    default:
      break;
  }
  for (const RefusedPickleOpcode& refused : kRefusedPickleOpcodes) {
    if (refused.opcode == opcode) return Error(absl::StrCat("opcode ", refused.name, " ", refused.why));
  }
  return Error("no such opcode, expected one of protocols 2 to 5");
}

absl::Status PickleMachine::PushSpan(PickleKind kind, int length_width) {
  uint64_t offset = 0;
  uint64_t length = 0;
  const absl::Status status = input_.TakeSpan(length_width, offset, length);
  if (status.ok()) Push(kind, offset, static_cast<uint32_t>(length));
  return status;
}

absl::Status PickleMachine::PushLong(int length_width) {
  uint64_t offset = 0;
  uint64_t length = 0;
  const absl::Status status = input_.TakeSpan(length_width, offset, length);
  if (!status.ok()) return status;
  if (length > sizeof(uint64_t)) {
    Push(PickleKind::kBigInt, offset, static_cast<uint32_t>(length));
  } else {
    Push(PickleKind::kInt, SignExtended(LittleEndian(input_.data().substr(offset, length)), length));
  }
  return status;
}

absl::Status PickleMachine::PushInt(int width, bool sign) {
  uint64_t value = 0;
  const absl::Status status = input_.TakeUnsigned(width, value);
  if (status.ok()) Push(PickleKind::kInt, sign ? SignExtended(value, static_cast<uint64_t>(width)) : value);
  return status;
}

absl::Status PickleMachine::PushFloat() {
  uint64_t bits = 0;
  const absl::Status status = input_.TakeUnsigned(8, bits);
  // The one argument that is big-endian.
  if (status.ok()) Push(PickleKind::kFloat, __builtin_bswap64(bits));
  return status;
}

absl::Status PickleMachine::Need(size_t values) const {
  const size_t have = stack_.size() - (marks_.empty() ? 0 : marks_.back());
  if (have >= values) return absl::OkStatus();
  return Error(absl::StrCat(have, " values on the stack, expected at least ", values));
}

absl::Status PickleMachine::TakeMark(size_t& position) {
  if (marks_.empty()) return Error("no mark on the stack, expected one");
  position = marks_.back();
  marks_.pop_back();
  return absl::OkStatus();
}

void PickleMachine::PushContainer(PickleKind kind, size_t from) {
  const uint32_t container = pickle_.nodes_.Add({kind, 0, 0});
  MoveInto(container, from);
  stack_.push_back(container);
}

absl::Status PickleMachine::Extend(PickleKind kind, size_t values) {
  const absl::Status status = Need(values + 1);
  return status.ok() ? ExtendAt(kind, stack_.size() - values) : status;
}

absl::Status PickleMachine::ExtendFromMark(PickleKind kind) {
  size_t from = 0;
  absl::Status status = TakeMark(from);
  if (!status.ok()) return status;
  status = Need(stack_.size() - from + 1);
  return status.ok() ? ExtendAt(kind, from) : status;
}

absl::Status PickleMachine::ExtendAt(PickleKind kind, size_t from) {
  const uint32_t container = stack_[from - 1];
  if (pickle_.nodes_[container].kind != kind) {
    return Error(absl::StrCat("adds to ", PickleValue(&pickle_, container).Describe(),
                              ", expected a list, dict or set to suit"));
  }
  if (kind == PickleKind::kDict && (stack_.size() - from) % 2 != 0) {
    return Error(absl::StrCat(stack_.size() - from, " keys and values, expected an even number"));
  }
  MoveInto(container, from);
  return absl::OkStatus();
}

void PickleMachine::MoveInto(uint32_t container, size_t from) {
  Node& node = pickle_.nodes_[container];
  auto first = static_cast<uint32_t>(node.payload >> 32);
  auto last = static_cast<uint32_t>(node.payload);
  for (size_t i = from; i < stack_.size(); ++i) {
    const uint32_t link = pickle_.links_.Add({stack_[i], 0});
    (first == 0 ? first : pickle_.links_[last].next) = link;
    last = link;
  }
  const size_t added = stack_.size() - from;
  node.count += static_cast<uint32_t>(node.kind == PickleKind::kDict ? added / 2 : added);
  node.payload = uint64_t{first} << 32 | last;
  stack_.resize(from);
}

absl::Status PickleMachine::Get(int width) {
  uint64_t index = 0;
  const absl::Status status = input_.TakeUnsigned(width, index);
  if (!status.ok()) return status;
  if (index >= memo_.size() || memo_[index] == 0)
    return Error(absl::StrCat("memo entry ", index, ", expected one that was put"));
  stack_.push_back(memo_[index] - 1);
  return status;
}

absl::Status PickleMachine::Put(uint64_t index) {
  const absl::Status status = Need(1);
  if (!status.ok()) return status;
  // Writers number entries from 0 (torch's and Python's both), so an index beyond the bytes read so far is no honest
  // one.
  if (index > input_.position())
    return Error(absl::StrCat("memo entry ", index, " after ", input_.position(), " bytes, expected a lower number"));
  if (index >= memo_.size()) memo_.resize(index + 1);
  if (memo_[index] == 0) ++memoized_;
  memo_[index] = stack_.back() + 1;
  return status;
}

}  // namespace expanse::bench

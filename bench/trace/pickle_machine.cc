#include "bench/trace/pickle_machine.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse::bench {
namespace {

// The opcodes served here; names and bytes as in Python's pickletools.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

struct RefusedOpcode {
  uint8_t opcode;
  const char* name;
  const char* why;
};

constexpr const char* kCalls = "imports or calls code, and only plain data is read";
constexpr const char* kOutside = "refers to something outside the file, and only plain data is read";
constexpr const char* kOldText = "belongs to protocols 0 and 1, and protocols 2 to 5 are read";

constexpr RefusedOpcode kRefused[] = {
    {'c', "GLOBAL", kCalls},      {0x93, "STACK_GLOBAL", kCalls},  {'R', "REDUCE", kCalls},
    {'b', "BUILD", kCalls},       {'i', "INST", kCalls},           {'o', "OBJ", kCalls},
    {0x81, "NEWOBJ", kCalls},     {0x92, "NEWOBJ_EX", kCalls},     {0x82, "EXT1", kCalls},
    {0x83, "EXT2", kCalls},       {0x84, "EXT4", kCalls},          {'P', "PERSID", kOutside},
    {'Q', "BINPERSID", kOutside}, {0x97, "NEXT_BUFFER", kOutside}, {0x98, "READONLY_BUFFER", kOutside},
    {'I', "INT", kOldText},       {'L', "LONG", kOldText},         {'F', "FLOAT", kOldText},
    {'S', "STRING", kOldText},    {'V', "UNICODE", kOldText},      {'g', "GET", kOldText},
    {'p', "PUT", kOldText},       {'d', "DICT", kOldText},         {'l', "LIST", kOldText},
};

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

// The two's complement value of 1 to 8 bytes.
uint64_t SignExtended(uint64_t value, uint64_t bytes) {
  if (bytes == 0 || bytes == 8) return value;
  const uint64_t sign = uint64_t{1} << (bytes * 8 - 1);
  return (value ^ sign) - sign;
}

}  // namespace

absl::StatusOr<Pickle> PickleMachine::Run() {
  if (data_.size() >= std::numeric_limits<uint32_t>::max()) {
    return Error(absl::StrCat("a pickle of ", data_.size(), " bytes, expected less than 4 GiB"));
  }
  pickle_.links_.Add({0, 0});  // link 0 stands for "none"
  bool done = false;
  while (!done) {
    opcode_at_ = position_;
    if (position_ == data_.size()) return Error("the file stops short, expected another opcode");
    const auto opcode = static_cast<uint8_t>(data_[position_++]);
    if (opcode_at_ == 0 && opcode != kProto) return Error("expected the opcode PROTO (0x80) of protocols 2 to 5");
    const absl::Status status = Step(opcode, done);
    if (!status.ok()) return status;
  }
  pickle_.root_ = stack_.back();
  pickle_.consumed_ = position_;
  return std::move(pickle_);
}

absl::Status PickleMachine::Step(uint8_t opcode, bool& done) {
  uint64_t value = 0;
  absl::Status status;
  switch (opcode) {
    case kProto:
      status = ReadUnsigned(1, value);
      if (status.ok() && (value < 2 || value > 5)) return Error(absl::StrCat("protocol ", value, ", expected 2 to 5"));
      return status;
    case kFrame:
      status = ReadUnsigned(8, value);
      if (status.ok() && value > data_.size() - position_) {
        return Error(
            absl::StrCat("a frame of ", value, " bytes, expected at most the ", data_.size() - position_, " left"));
      }
      return status;
    case kStop:
      done = true;
      return Need(1);

    case kNone:
      Push(PickleKind::kNone);
      return status;
    case kNewTrue:
    case kNewFalse:
      Push(PickleKind::kBool, opcode == kNewTrue ? 1 : 0);
      return status;
    case kBinInt:
      return PushInt(4, /*sign=*/true);
    case kBinInt1:
      return PushInt(1, /*sign=*/false);
    case kBinInt2:
      return PushInt(2, /*sign=*/false);
    case kLong1:
      return PushLong(1);
    case kLong4:
      return PushLong(4);
    case kBinFloat:
      return PushFloat();
    case kShortBinUnicode:
    case kShortBinString:
      return PushSpan(PickleKind::kString, 1);
    case kBinUnicode:
    case kBinString:
      return PushSpan(PickleKind::kString, 4);
    case kBinUnicode8:
      return PushSpan(PickleKind::kString, 8);
    case kShortBinBytes:
      return PushSpan(PickleKind::kBytes, 1);
    case kBinBytes:
      return PushSpan(PickleKind::kBytes, 4);
    case kBinBytes8:
    case kByteArray8:
      return PushSpan(PickleKind::kBytes, 8);

    case kEmptyList:
      Push(PickleKind::kList);
      return status;
    case kEmptyDict:
      Push(PickleKind::kDict);
      return status;
    case kEmptySet:
      Push(PickleKind::kSet);
      return status;
    case kEmptyTuple:
      Push(PickleKind::kTuple);
      return status;
    case kTuple1:
    case kTuple2:
    case kTuple3: {
      const size_t items = opcode - kTuple1 + size_t{1};
      status = Need(items);
      if (status.ok()) PushContainer(PickleKind::kTuple, stack_.size() - items);
      return status;
    }
    case kTuple:
    case kFrozenSet: {
      size_t from = 0;
      status = TakeMark(from);
      if (status.ok()) PushContainer(opcode == kTuple ? PickleKind::kTuple : PickleKind::kSet, from);
      return status;
    }
    case kAppend:
      return Extend(PickleKind::kList, 1);
    case kAppends:
      return ExtendFromMark(PickleKind::kList);
    case kSetItem:
      return Extend(PickleKind::kDict, 2);
    case kSetItems:
      return ExtendFromMark(PickleKind::kDict);
    case kAddItems:
      return ExtendFromMark(PickleKind::kSet);

    case kMark:
      marks_.push_back(static_cast<uint32_t>(stack_.size()));
      return status;
    case kPop:
      // As Python does: where nothing lies above the mark, the mark itself goes.
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
        return status;
      }
      status = Need(1);
      if (status.ok()) stack_.pop_back();
      return status;
    case kPopMark: {
      size_t from = 0;
      status = TakeMark(from);
      if (status.ok()) stack_.resize(from);
      return status;
    }
    case kDup:
      status = Need(1);
      if (status.ok()) stack_.push_back(stack_.back());
      return status;

    case kMemoize:
      return Put(memoized_);
    case kBinPut:
    case kLongBinPut:
      status = ReadUnsigned(opcode == kBinPut ? 1 : 4, value);
      return status.ok() ? Put(value) : status;
    case kBinGet:
      return Get(1);
    case kLongBinGet:
      return Get(4);
    default:
      break;
  }
  for (const RefusedOpcode& refused : kRefused) {
    if (refused.opcode == opcode) return Error(absl::StrCat("opcode ", refused.name, " ", refused.why));
  }
  return Error("no such opcode, expected one of protocols 2 to 5");
}

absl::Status PickleMachine::ReadUnsigned(int width, uint64_t& value) {
  const auto bytes = static_cast<size_t>(width);
  if (data_.size() - position_ < bytes) return Error("the file stops within the opcode's argument");
  value = LittleEndian(data_.substr(position_, bytes));
  position_ += bytes;
  return absl::OkStatus();
}

absl::Status PickleMachine::ReadSpan(int length_width, uint64_t& offset, uint64_t& length) {
  const absl::Status status = ReadUnsigned(length_width, length);
  if (!status.ok()) return status;
  if (length > data_.size() - position_) {
    return Error(
        absl::StrCat("a length of ", length, " bytes, expected at most the ", data_.size() - position_, " left"));
  }
  offset = position_;
  position_ += length;
  return absl::OkStatus();
}

absl::Status PickleMachine::PushSpan(PickleKind kind, int length_width) {
  uint64_t offset = 0;
  uint64_t length = 0;
  const absl::Status status = ReadSpan(length_width, offset, length);
  if (status.ok()) Push(kind, offset, static_cast<uint32_t>(length));
  return status;
}

absl::Status PickleMachine::PushLong(int length_width) {
  uint64_t offset = 0;
  uint64_t length = 0;
  const absl::Status status = ReadSpan(length_width, offset, length);
  if (!status.ok()) return status;
  if (length > sizeof(uint64_t)) {
    Push(PickleKind::kBigInt, offset, static_cast<uint32_t>(length));
  } else {
    Push(PickleKind::kInt, SignExtended(LittleEndian(data_.substr(offset, length)), length));
  }
  return status;
}

absl::Status PickleMachine::PushInt(int width, bool sign) {
  uint64_t value = 0;
  const absl::Status status = ReadUnsigned(width, value);
  if (status.ok()) Push(PickleKind::kInt, sign ? SignExtended(value, static_cast<uint64_t>(width)) : value);
  return status;
}

absl::Status PickleMachine::PushFloat() {
  uint64_t bits = 0;
  const absl::Status status = ReadUnsigned(8, bits);
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
  const absl::Status status = ReadUnsigned(width, index);
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
  if (index > position_)
    return Error(absl::StrCat("memo entry ", index, " after ", position_, " bytes, expected a lower number"));
  if (index >= memo_.size()) memo_.resize(index + 1);
  if (memo_[index] == 0) ++memoized_;
  memo_[index] = stack_.back() + 1;
  return status;
}

absl::Status PickleMachine::Error(absl::string_view problem) const {
  std::string at;
  if (opcode_at_ < data_.size()) {
    at = absl::StrCat(" (opcode 0x", absl::Hex(static_cast<uint8_t>(data_[opcode_at_]), absl::kZeroPad2), ")");
  }
  return absl::InvalidArgumentError(absl::StrCat(name_, ": byte ", opcode_at_, at, ": ", problem));
}

}  // namespace expanse::bench

// The instructions that pickles are made of, and which of them are refused.

#ifndef EXPANSE_BENCH_TRACE_PICKLE_OPCODES_H_
#define EXPANSE_BENCH_TRACE_PICKLE_OPCODES_H_

#include <cstdint>

namespace expanse::bench {

// The opcodes served here; names and bytes as in Python's pickletools.
enum class PickleOpcode : uint8_t {
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

// One that is not served.
struct RefusedPickleOpcode {
  uint8_t opcode;
  const char* name;
  const char* why;
};

// Why.
inline constexpr const char* kPickleCalls = "imports or calls code, and only plain data is read";
inline constexpr const char* kPickleRefersOutside = "refers to something outside the file, and only plain data is read";
inline constexpr const char* kPickleOldProtocol = "belongs to protocols 0 and 1, and protocols 2 to 5 are read";

inline constexpr RefusedPickleOpcode kRefusedPickleOpcodes[] = {
    {'c', "GLOBAL", kPickleCalls},
    {0x93, "STACK_GLOBAL", kPickleCalls},
    {'R', "REDUCE", kPickleCalls},
    {'b', "BUILD", kPickleCalls},
    {'i', "INST", kPickleCalls},
    {'o', "OBJ", kPickleCalls},
    {0x81, "NEWOBJ", kPickleCalls},
    {0x92, "NEWOBJ_EX", kPickleCalls},
    {0x82, "EXT1", kPickleCalls},
    {0x83, "EXT2", kPickleCalls},
    {0x84, "EXT4", kPickleCalls},
    {'P', "PERSID", kPickleRefersOutside},
    {'Q', "BINPERSID", kPickleRefersOutside},
    {0x97, "NEXT_BUFFER", kPickleRefersOutside},
    {0x98, "READONLY_BUFFER", kPickleRefersOutside},
    {'I', "INT", kPickleOldProtocol},
    {'L', "LONG", kPickleOldProtocol},
    {'F', "FLOAT", kPickleOldProtocol},
    {'S', "STRING", kPickleOldProtocol},
    {'V', "UNICODE", kPickleOldProtocol},
    {'g', "GET", kPickleOldProtocol},
    {'p', "PUT", kPickleOldProtocol},
    {'d', "DICT", kPickleOldProtocol},
    {'l', "LIST", kPickleOldProtocol},
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_PICKLE_OPCODES_H_

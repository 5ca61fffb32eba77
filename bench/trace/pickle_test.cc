#include "bench/trace/pickle.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "bench/trace/pickle_values_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

std::string Problem(const std::string& data) {
  const absl::StatusOr<Pickle> pickle = Pickle::Parse(data, "p");
  return pickle.ok() ? "accepted" : std::string(pickle.status().message());
}

PickleValue Find(PickleValue dict, absl::string_view wanted) {
  for (PickleCursor items(dict); items.HasNext();) {
    const PickleValue key = items.Next();
    const PickleValue value = items.Next();
    if (key.AsString() == wanted) return value;
  }
  ADD_FAILURE() << "no key " << wanted;
  return dict;
}

std::vector<PickleValue> Items(PickleValue list) {
  std::vector<PickleValue> items;
  for (PickleCursor cursor(list); cursor.HasNext();) items.push_back(cursor.Next());
  return items;
}

struct PythonPickle {
  const char* what;
  const char* hex;
};

// pickle.dumps(v, protocol) of
//   {'ints': [0, 255, 65535, -1, 2**31, -2**40, 2**63, 2**64-1, -2**70], 'f': -2.5, 't': (True, False, None),
//    'e': [(), [], {}], 's': {7}, 'b': b'xy', 'u': '\u00e9'}
// for protocols 4 and 5. Without 's' for 3, and without 's' and 'b' for 2, where Python calls constructors for these.
constexpr PythonPickle kPlainData[] = {
    {"protocol 2",
     "80027d7100285804000000696e747371015d7102284b004bff4dffff4affffffff8a0500000080008a060000000000ff8a090000000000000"
     "0"
     "80008a09ffffffffffffffff008a090000000000000000c065580100000066710347c004000000000000580100000074710488894e8771055"
     "8"
     "010000006571065d710728295d71087d710965580100000075710a5802000000c3a9710b752e"},
    {"protocol 3",
     "80037d7100285804000000696e747371015d7102284b004bff4dffff4affffffff8a0500000080008a060000000000ff8a090000000000000"
     "0"
     "80008a09ffffffffffffffff008a090000000000000000c065580100000066710347c004000000000000580100000074710488894e8771055"
     "8"
     "010000006571065d710728295d71087d710965580100000062710a43027879710b580100000075710c5802000000c3a9710d752e"},
    {"protocol 4",
     "8004958b000000000000007d94288c04696e7473945d94284b004bff4dffff4affffffff8a0500000080008a060000000000ff8a090000000"
     "0"
     "00000080008a09ffffffffffffffff008a090000000000000000c0658c01669447c0040000000000008c01749488894e87948c0165945d942"
     "8"
     "295d947d94658c0173948f94284b07908c01629443027879948c0175948c02c3a994752e"},
    {"protocol 5",
     "8005958b000000000000007d94288c04696e7473945d94284b004bff4dffff4affffffff8a0500000080008a060000000000ff8a090000000"
     "0"
     "00000080008a09ffffffffffffffff008a090000000000000000c0658c01669447c0040000000000008c01749488894e87948c0165945d942"
     "8"
     "295d947d94658c0173948f94284b07908c01629443027879948c0175948c02c3a994752e"},
};

TEST(Pickle, ReadsPlainDataAsPythonWritesIt) {
  for (const PythonPickle& python : kPlainData) {
    SCOPED_TRACE(python.what);
    const std::string data = absl::HexStringToBytes(python.hex);
    const absl::StatusOr<Pickle> pickle = Pickle::Parse(data, "p");
    ASSERT_TRUE(pickle.ok()) << pickle.status();
    EXPECT_EQ(pickle->consumed(), data.size());
    const PickleValue root = pickle->root();
    ASSERT_TRUE(root.is_dict());

    const std::vector<PickleValue> ints = Items(Find(root, "ints"));
    ASSERT_EQ(ints.size(), 9u);
    EXPECT_EQ(ints[0].AsUint64(), 0u);
    EXPECT_EQ(ints[1].AsUint64(), 255u);
    EXPECT_EQ(ints[2].AsUint64(), 65535u);
    EXPECT_EQ(ints[3].AsInt64(), -1);
    EXPECT_EQ(ints[3].AsUint64(), std::nullopt);
    EXPECT_EQ(ints[4].AsInt64(), int64_t{1} << 31);
    EXPECT_EQ(ints[5].AsInt64(), -(int64_t{1} << 40));
    EXPECT_EQ(ints[6].AsInt64(), std::nullopt);
    EXPECT_EQ(ints[6].AsUint64(), uint64_t{1} << 63);
    EXPECT_EQ(ints[7].AsUint64(), ~uint64_t{0});
    EXPECT_EQ(ints[8].kind(), PickleKind::kBigInt);
    EXPECT_EQ(ints[8].AsUint64(), std::nullopt);

    EXPECT_EQ(Find(root, "f").AsDouble(), -2.5);
    const std::vector<PickleValue> tuple = Items(Find(root, "t"));
    ASSERT_EQ(tuple.size(), 3u);
    EXPECT_EQ(tuple[0].AsBool(), true);
    EXPECT_EQ(tuple[1].AsBool(), false);
    EXPECT_EQ(tuple[2].kind(), PickleKind::kNone);
    const std::vector<PickleValue> empty = Items(Find(root, "e"));
    ASSERT_EQ(empty.size(), 3u);
    EXPECT_EQ(empty[0].kind(), PickleKind::kTuple);
    EXPECT_EQ(empty[1].kind(), PickleKind::kList);
    EXPECT_EQ(empty[2].kind(), PickleKind::kDict);
    EXPECT_EQ(Find(root, "u").AsString(), "\xc3\xa9");
    if (data[1] >= 3) {
      EXPECT_EQ(Find(root, "b").Describe(), "2 bytes");
    }
    if (data[1] >= 4) {
      EXPECT_EQ(Items(Find(root, "s")).front().AsInt64(), 7);
    }
  }
}

TEST(Pickle, ExecutesNothing) {
  // pickle.dumps(os.system-calling object, 0 to 5) in their smallest forms, and what else reaches outside.
  const struct {
    std::string opcodes;
    absl::string_view expected;
  } kHostile[] = {
      {"cos\nsystem\n(\x8c\x04trueR",
       "p: byte 2 (opcode 0x63): opcode GLOBAL imports or calls code, and only plain data is read"},
      {"\x8c\x02os\x8c\x06system\x93", "p: byte 14 (opcode 0x93): opcode STACK_GLOBAL imports"},
      {"N)R", "p: byte 4 (opcode 0x52): opcode REDUCE imports"},
      {"N}b", "p: byte 4 (opcode 0x62): opcode BUILD imports"},
      {"(ios\nsystem\n", "p: byte 3 (opcode 0x69): opcode INST imports"},
      {"(No", "p: byte 4 (opcode 0x6f): opcode OBJ imports"},
      {"N)\x81", "p: byte 4 (opcode 0x81): opcode NEWOBJ imports"},
      {"N)}\x92", "p: byte 5 (opcode 0x92): opcode NEWOBJ_EX imports"},
      {"\x82\x01", "p: byte 2 (opcode 0x82): opcode EXT1 imports"},
      {"\x83\x01\x01", "p: byte 2 (opcode 0x83): opcode EXT2 imports"},
      {"\x84\x01\x01\x01\x01", "p: byte 2 (opcode 0x84): opcode EXT4 imports"},
      {"Pid\n", "p: byte 2 (opcode 0x50): opcode PERSID refers to something outside the file"},
      {"NQ", "p: byte 3 (opcode 0x51): opcode BINPERSID refers to something outside"},
      {"\x97", "p: byte 2 (opcode 0x97): opcode NEXT_BUFFER refers to something outside"},
      {"\x98", "p: byte 2 (opcode 0x98): opcode READONLY_BUFFER refers to something outside"},
      {"I1\n", "p: byte 2 (opcode 0x49): opcode INT belongs to protocols 0 and 1, and protocols 2 to 5 are read"},
      {"\xff", "p: byte 2 (opcode 0xff): no such opcode"},
  };
  for (const auto& hostile : kHostile) {
    EXPECT_THAT(Problem(Pickled(hostile.opcodes)), HasSubstr(std::string(hostile.expected)));
  }
}

TEST(Pickle, ErrorsNameFileByteValueAndWhatWasExpected) {
  const std::string begin("\x80\x04", 2);
  EXPECT_THAT(Problem(""), Eq("p: byte 0: the file stops short, expected another opcode"));
  EXPECT_THAT(Problem("N."), Eq("p: byte 0 (opcode 0x4e): expected the opcode PROTO (0x80) of protocols 2 to 5"));
  EXPECT_THAT(Problem("\x80\x06."), Eq("p: byte 0 (opcode 0x80): protocol 6, expected 2 to 5"));
  EXPECT_THAT(Problem("\x80\x01."), Eq("p: byte 0 (opcode 0x80): protocol 1, expected 2 to 5"));
  EXPECT_THAT(Problem("\x80"), Eq("p: byte 0 (opcode 0x80): the file stops within the opcode's argument"));
  EXPECT_THAT(Problem(begin), Eq("p: byte 2: the file stops short, expected another opcode"));
  EXPECT_THAT(Problem(begin + "."), Eq("p: byte 2 (opcode 0x2e): 0 values on the stack, expected at least 1"));
  EXPECT_THAT(Problem(begin + "J\x01\x02"), Eq("p: byte 2 (opcode 0x4a): the file stops within the opcode's argument"));
  EXPECT_THAT(Problem(begin + "\x8c\x05"
                              "ab"),
              Eq("p: byte 2 (opcode 0x8c): a length of 5 bytes, expected at most the 2 left"));
  EXPECT_THAT(Problem(begin + "\x8d" + std::string(8, '\xff')),
              Eq("p: byte 2 (opcode 0x8d): a length of 18446744073709551615 bytes, expected at most the 0 left"));
  EXPECT_THAT(Problem(begin + "\x95" + std::string(8, '\xff')),
              Eq("p: byte 2 (opcode 0x95): a frame of 18446744073709551615 bytes, expected at most the 0 left"));
  EXPECT_THAT(Problem(begin + "N\x86."), Eq("p: byte 3 (opcode 0x86): 1 values on the stack, expected at least 2"));
  EXPECT_THAT(Problem(begin + "N(a."), Eq("p: byte 4 (opcode 0x61): 0 values on the stack, expected at least 2"));
  EXPECT_THAT(Problem(begin + "Nt."), Eq("p: byte 3 (opcode 0x74): no mark on the stack, expected one"));
  EXPECT_THAT(Problem(begin + "NNa."),
              Eq("p: byte 4 (opcode 0x61): adds to None, expected a list, dict or set to suit"));
  EXPECT_THAT(Problem(begin + "](NNu."),
              Eq("p: byte 6 (opcode 0x75): adds to a list of 0, expected a list, dict or set to suit"));
  EXPECT_THAT(Problem(begin + "}(NNNu."), Eq("p: byte 7 (opcode 0x75): 3 keys and values, expected an even number"));
  EXPECT_THAT(Problem(begin + "h\x05."), Eq("p: byte 2 (opcode 0x68): memo entry 5, expected one that was put"));
  EXPECT_THAT(Problem(begin + "Nr\xff\xff\xff\x7f."),
              Eq("p: byte 3 (opcode 0x72): memo entry 2147483647 after 8 bytes, expected a lower number"));
  EXPECT_THAT(Problem(begin + "\x94."), Eq("p: byte 2 (opcode 0x94): 0 values on the stack, expected at least 1"));
}

TEST(Pickle, PopTakesTheMarkWhereNothingLiesAbove) {
  EXPECT_THAT(Problem(Pickled("K\x07(0")), Eq("accepted"));
  EXPECT_THAT(Problem(Pickled("K\x07(NN1")), Eq("accepted"));
  EXPECT_THAT(Problem(Pickled("K\x07N0")), Eq("accepted"));
  EXPECT_THAT(Problem(Pickled("0")), HasSubstr("0 values on the stack"));
}

TEST(Pickle, WhatTheMemoSharesIsSharedAndNotCopied) {
  // Forty lists, each holding the one before ten times: 10^40 items to a reader that copies.
  std::string code = "]\x94";
  for (int level = 0; level < 40; ++level) {
    code += "](";
    for (int i = 0; i < 10; ++i) code += std::string("h") + static_cast<char>(level);
    code += "e\x94";
  }
  const std::string data = Pickled(code);
  const absl::StatusOr<Pickle> pickle = Pickle::Parse(data, "p");
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  PickleValue value = pickle->root();
  for (int level = 0; level < 40; ++level) {
    ASSERT_EQ(value.size(), 10u);
    value = PickleCursor(value).Next();
  }
  EXPECT_EQ(value.size(), 0u);
}

TEST(Pickle, AListMayHoldItselfAndGrowThroughTheMemo) {
  const std::string data =
      Pickled(std::string("]\x94(h\0K\x05"
                          "e",
                          8));  // l = []; l.append(l); l.append(5)
  const absl::StatusOr<Pickle> pickle = Pickle::Parse(data, "p");
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const std::vector<PickleValue> items = Items(pickle->root());
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].size(), 2u);
  EXPECT_EQ(items[1].AsInt64(), 5);
}

TEST(Pickle, DepthCostsNothing) {
  // Lists nested a million deep.
  const int depth = 1000000;
  const std::string data = Pickled(std::string(depth, ']') + std::string(depth - 1, 'a'));
  const absl::StatusOr<Pickle> pickle = Pickle::Parse(data, "p");
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  PickleValue value = pickle->root();
  int levels = 1;
  for (; value.size() > 0; ++levels) value = PickleCursor(value).Next();
  EXPECT_EQ(levels, depth);
}

TEST(Pickle, DescribeIsShortAndPrintable) {
  const auto describe = [](const std::string& code) {
    const std::string data = Pickled(code);
    const absl::StatusOr<Pickle> pickle = Pickle::Parse(data, "p");
    return pickle.ok() ? pickle->root().Describe() : std::string(pickle.status().message());
  };
  EXPECT_EQ(describe("N"), "None");
  EXPECT_EQ(describe("\x88"), "True");
  EXPECT_EQ(describe(PickledInt(-5)), "-5");
  EXPECT_EQ(describe(PickledString("a\n\xff")), "'a\\n\\xff'");
  EXPECT_EQ(describe(PickledString(std::string(200, 'x'))), absl::StrCat("'", std::string(60, 'x'), "...'"));
  EXPECT_EQ(describe(PickledList({"N", "N"})), "a list of 2");
  EXPECT_EQ(describe(PickledDict({{"a", "N"}})), "a dict of 1");
  EXPECT_EQ(describe("\x8a\x09" + std::string(9, '\x7f')), "an integer of 9 bytes");
}

TEST(Pickle, IsToldByItsFirstTwoBytes) {
  EXPECT_TRUE(Pickle::LooksLikePickle("\x80\x02."));
  EXPECT_TRUE(Pickle::LooksLikePickle("\x80\x05."));
  EXPECT_FALSE(Pickle::LooksLikePickle("\x80"));
  EXPECT_FALSE(Pickle::LooksLikePickle("op,id"));
}

}  // namespace
}  // namespace expanse::bench

#include "bench/trace/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::HasSubstr;

// Python's gzip.compress(b"hello ", mtime=0) and of b"world\n".
std::string Hello() { return absl::HexStringToBytes("1f8b0800000000000203cb48cdc9c9570000f6f981ed06000000"); }
std::string World() { return absl::HexStringToBytes("1f8b08000000000002032bcf2fca49e10200a86138dd06000000"); }

// Decodes `file` cut into pieces of `piece` bytes.
absl::StatusOr<Input> Decode(absl::string_view file, Bytes max_size = kDefaultMaxInput, size_t piece = 1 << 20) {
  InputDecoder decoder("f", max_size);
  for (; !file.empty(); file.remove_prefix(std::min(piece, file.size()))) {
    const absl::Status status = decoder.Feed(file.substr(0, piece));
    if (!status.ok()) return status;
  }
  return decoder.Finish();
}

std::string Text(const absl::StatusOr<Input>& input) { return input.ok() ? input->text : input.status().ToString(); }

TEST(InputDecoder, KeepsWhatIsNotGzip) {
  for (const absl::string_view text : {"", "o", "\x1f", "op,id,bytes,stream\n", "\x1f\x8c"}) {
    const absl::StatusOr<Input> input = Decode(text);
    EXPECT_EQ(Text(input), text);
    EXPECT_FALSE(input.value().compressed);
  }
}

TEST(InputDecoder, DecompressesOneMemberOrSeveralHoweverTheFileIsCut) {
  const std::string one = Hello();
  const std::string two = Hello() + World();
  const std::string padded = two + std::string(1000, '\0');
  for (size_t piece = 1; piece < two.size() + 2; ++piece) {
    EXPECT_EQ(Text(Decode(one, kDefaultMaxInput, piece)), "hello ");
    EXPECT_EQ(Text(Decode(two, kDefaultMaxInput, piece)), "hello world\n");
    EXPECT_EQ(Text(Decode(padded, kDefaultMaxInput, piece)), "hello world\n");
  }
  EXPECT_TRUE(Decode(one).value().compressed);
}

TEST(InputDecoder, EveryTruncationIsAnErrorThatNamesFileAndOffset) {
  const std::string two = Hello() + World();
  for (size_t length = 2; length < two.size(); ++length) {
    if (length == Hello().size()) continue;  // a whole member
    const absl::StatusOr<Input> input = Decode(two.substr(0, length));
    ASSERT_EQ(input.status().code(), absl::StatusCode::kInvalidArgument) << length;
    EXPECT_THAT(std::string(input.status().message()),
                HasSubstr(absl::StrCat("f: byte ", length, " of the compressed file")))
        << length;
  }
}

TEST(InputDecoder, CorruptionIsAnErrorThatNamesFileAndOffset) {
  std::string bad_sum = Hello();
  bad_sum[bad_sum.size() - 8] ^= 1;
  EXPECT_THAT(Text(Decode(bad_sum)), HasSubstr("f: byte "));
  EXPECT_THAT(Text(Decode(bad_sum)), HasSubstr("incorrect data check"));
  EXPECT_THAT(Text(Decode(Hello() + "x")),
              HasSubstr(absl::StrCat("f: byte ", Hello().size(),
                                     " of the compressed file: 0x78 after a gzip member, expected another")));
  EXPECT_THAT(Text(Decode(Hello() + std::string(3, '\0') + World())), HasSubstr("0x1f after a gzip member"));
  EXPECT_THAT(Text(Decode(std::string("\x1f\x8b\x07\x00", 4) + std::string(20, 'x'))),
              HasSubstr("unknown compression method"));
}

TEST(InputDecoder, RefusesMoreThanItMayHold) {
  EXPECT_EQ(Text(Decode("12345", Bytes(5))), "12345");
  const absl::StatusOr<Input> plain = Decode("123456", Bytes(5));
  EXPECT_EQ(plain.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(plain), HasSubstr("f: holds more than 5 bytes, the most that may be read"));
  EXPECT_EQ(Text(Decode(Hello(), Bytes(6))), "hello ");
  EXPECT_THAT(Text(Decode(Hello(), Bytes(5))), HasSubstr("f: holds more than 5 bytes decompressed"));
  EXPECT_THAT(Text(Decode(Hello() + World(), Bytes(11))), HasSubstr("more than 11 bytes"));
}

TEST(ReadInput, NamesAFileThatCannotBeRead) {
  const absl::StatusOr<Input> absent = ReadInput("/nonexistent/trace.csv");
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(absent), HasSubstr("/nonexistent/trace.csv: cannot be opened"));
  EXPECT_THAT(Text(ReadInput("/")), HasSubstr("/: cannot be read"));
}

TEST(ReadInput, ReadsAFileAndStandardInput) {
  const std::string path = testing::TempDir() + "expanse_input_test";
  std::ofstream(path, std::ios::binary) << Hello() << World();
  const absl::StatusOr<Input> file = ReadInput(path);
  EXPECT_EQ(Text(file), "hello world\n");
  EXPECT_EQ(file.value().name, path);

  const int saved = dup(STDIN_FILENO);
  const int fd = open(path.c_str(), O_RDONLY);
  ASSERT_GE(dup2(fd, STDIN_FILENO), 0);
  const absl::StatusOr<Input> standard = ReadInput("-");
  if (saved >= 0) dup2(saved, STDIN_FILENO);
  EXPECT_EQ(Text(standard), "hello world\n");
  EXPECT_EQ(standard.value().name, "<standard input>");
  close(fd);
  close(saved);
  unlink(path.c_str());
}

}  // namespace
}  // namespace expanse::bench

#include "bench/trace/base_format.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;

constexpr absl::string_view kHeader = "op,id,bytes,stream\n";

// What the reader says about these rows under a header on line 1.
std::string Problem(absl::string_view rows) {
  const absl::StatusOr<Trace> trace = ParseBaseFormat(absl::StrCat(kHeader, rows), "t.csv");
  return trace.ok() ? "accepted" : std::string(trace.status().message());
}

TEST(BaseFormat, ReadsEveryKindOfRow) {
  const absl::StatusOr<Trace> trace = ParseBaseFormat(
      "op,id,bytes,stream\na,7,1000,2\nm,step0,,\nu,7,,1\nk,7,250,1\nw,,,1\nf,7,,2\na,7,8,0\n", "t.csv");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->name, "t.csv");
  EXPECT_THAT(trace->events, ElementsAre(TraceEvent{TraceOp::kAllocate, 2, 0, 1000},
                                         TraceEvent{TraceOp::kMark, 0, 0, 0}, TraceEvent{TraceOp::kUse, 1, 0, 0},
                                         TraceEvent{TraceOp::kWork, 1, 0, 250}, TraceEvent{TraceOp::kWait, 1, 0, 0},
                                         TraceEvent{TraceOp::kFree, 2, 0, 0}, TraceEvent{TraceOp::kAllocate, 0, 1, 8}));
  EXPECT_THAT(trace->ids, ElementsAre(7, 7));
  EXPECT_THAT(trace->labels, ElementsAre("step0"));
  EXPECT_THAT(trace->extra_columns, IsEmpty());
}

TEST(BaseFormat, ToleratesCommentsBlanksCarriageReturnsByteOrderMarkAndNoLastLineBreak) {
  const absl::StatusOr<Trace> trace = ParseBaseFormat(
      "\xef\xbb\xbf# made by hand\r\n\r\n op , id,bytes,stream # columns\r\n\r\n  # indented\r\n a, 1 ,5 , 0 # "
      "weights\r\n\nf,1,,0",
      "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->events, ElementsAre(TraceEvent{TraceOp::kAllocate, 0, 0, 5}, TraceEvent{TraceOp::kFree, 0, 0, 0}));
}

TEST(BaseFormat, HeaderAloneIsAnEmptyTrace) {
  const absl::StatusOr<Trace> trace = ParseBaseFormat("op,id,bytes,stream", "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->events, IsEmpty());
}

TEST(BaseFormat, KeepsUnknownColumnsAndWritesThemBack) {
  const std::string text = "op,id,bytes,stream,site, note\na,1,5,0,model.py:3, two words\nm,step0,,\nf,1,,0,,\n";
  const absl::StatusOr<Trace> trace = ParseBaseFormat(text, "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->extra_header, ElementsAre("site", " note"));
  EXPECT_THAT(trace->extra_columns, ElementsAre(",model.py:3, two words", "", ",,"));
  const absl::StatusOr<std::string> written = FormatBaseFormat(*trace);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, text);
}

TEST(BaseFormat, WritesWhatItReads) {
  const std::string text = absl::StrCat(
      kHeader, "a,18446744073709551615,4611686018427387904,2147483647\nm,oom_5,,\nu,18446744073709551615,,0\n",
      "k,18446744073709551615,0,1\nw,,,2147483647\nf,18446744073709551615,,3\na,18446744073709551615,1,0\n");
  const absl::StatusOr<Trace> trace = ParseBaseFormat(text, "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_TRUE(Validate(*trace).ok()) << Validate(*trace);
  const absl::StatusOr<std::string> written = FormatBaseFormat(*trace);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, text);
}

TEST(BaseFormat, ErrorsNameFileLineValueAndWhatWasExpected) {
  EXPECT_THAT(Problem("a,1,5,0\n\nx,1,,0\n"), Eq("t.csv:4: operation 'x', expected one of a f m u k w"));
  EXPECT_THAT(Problem("alloc,1,5,0\n"), Eq("t.csv:2: operation 'alloc', expected one of a f m u k w"));
  EXPECT_THAT(Problem(",1,5,0\n"), Eq("t.csv:2: operation '', expected one of a f m u k w"));
  EXPECT_THAT(Problem("a,1,5\n"), Eq("t.csv:2: 3 fields in 'a,1,5', expected at least four: op,id,bytes,stream"));
  EXPECT_THAT(Problem("f,9,,0\n"), Eq("t.csv:2: id '9' is not live, expected the id of a live block"));
  EXPECT_THAT(Problem("u,9,,0\n"), Eq("t.csv:2: id '9' is not live, expected the id of a live block"));
  EXPECT_THAT(Problem("k,9,3,0\n"), Eq("t.csv:2: id '9' is not live, expected the id of a live block"));
  EXPECT_THAT(Problem("a,1,5,0\nf,1,,0\nf,1,,0\n"), Eq("t.csv:4: id '1' is not live, expected the id of a live block"));
  EXPECT_THAT(Problem("a,1,5,0\na,1,6,0\n"), Eq("t.csv:3: id '1' is live since line 2, expected an id that is not"));
  EXPECT_THAT(Problem("m,,,\n"), Eq("t.csv:2: label '', expected printable text"));
  EXPECT_THAT(Problem("m,a\x01,,\n"), Eq("t.csv:2: label 'a\\x01', expected printable text"));
}

TEST(BaseFormat, NumbersAreWholeAndWithinTheirRange) {
  const std::string bytes = "expected a whole number from 1 to 4611686018427387904";
  for (const absl::string_view value : {"-5", "", "5.5", "0x10", "5KiB", "+5", "1e3", "0", "4611686018427387905",
                                        "18446744073709551616", "99999999999999999999999999"}) {
    EXPECT_THAT(Problem(absl::StrCat("a,1,", value, ",0\n")),
                Eq(absl::StrCat("t.csv:2: bytes '", value, "', ", bytes)));
  }
  for (const absl::string_view value : {"-1", "", "x", "18446744073709551616"}) {
    const std::string expected =
        absl::StrCat("t.csv:2: id '", value, "', expected a whole number from 0 to 18446744073709551615");
    EXPECT_THAT(Problem(absl::StrCat("a,", value, ",5,0\n")), Eq(expected));
    EXPECT_THAT(Problem(absl::StrCat("f,", value, ",,0\n")), Eq(expected));
    EXPECT_THAT(Problem(absl::StrCat("u,", value, ",,0\n")), Eq(expected));
    EXPECT_THAT(Problem(absl::StrCat("k,", value, ",1,0\n")), Eq(expected));
  }
  for (const absl::string_view value : {"-1", "", "x", "2147483648"}) {
    const std::string end = absl::StrCat("stream '", value, "', expected a whole number from 0 to 2147483647");
    EXPECT_THAT(Problem(absl::StrCat("a,1,5,", value, "\n")), Eq(absl::StrCat("t.csv:2: ", end)));
    EXPECT_THAT(Problem(absl::StrCat("w,,,", value, "\n")), Eq(absl::StrCat("t.csv:2: ", end)));
    EXPECT_THAT(Problem(absl::StrCat("a,1,5,0\nf,1,,", value, "\n")), Eq(absl::StrCat("t.csv:3: ", end)));
    EXPECT_THAT(Problem(absl::StrCat("a,1,5,0\nu,1,,", value, "\n")), Eq(absl::StrCat("t.csv:3: ", end)));
    EXPECT_THAT(Problem(absl::StrCat("a,1,5,0\nk,1,1,", value, "\n")), Eq(absl::StrCat("t.csv:3: ", end)));
  }
  EXPECT_THAT(Problem("a,1,5,0\nk,1,-2,0\n"),
              Eq("t.csv:3: microseconds '-2', expected a whole number from 0 to 9223372036854775807"));
}

TEST(BaseFormat, FieldsWithoutAMeaningMustBeEmpty) {
  EXPECT_THAT(Problem("a,1,5,0\nf,1,5,0\n"), Eq("t.csv:3: bytes '5', expected nothing there in such a row"));
  EXPECT_THAT(Problem("a,1,5,0\nu,1,5,0\n"), Eq("t.csv:3: bytes '5', expected nothing there in such a row"));
  EXPECT_THAT(Problem("m,step0,1,\n"), Eq("t.csv:2: bytes '1', expected nothing there in such a row"));
  EXPECT_THAT(Problem("m,step0,,0\n"), Eq("t.csv:2: stream '0', expected nothing there in such a row"));
  EXPECT_THAT(Problem("w,1,,0\n"), Eq("t.csv:2: id '1', expected nothing there in such a row"));
  EXPECT_THAT(Problem("w,,1,0\n"), Eq("t.csv:2: bytes '1', expected nothing there in such a row"));
}

TEST(BaseFormat, LiveBytesAreBounded) {
  EXPECT_THAT(Problem("a,1,1,0\na,2,4611686018427387904,0\n"),
              Eq("t.csv:3: bytes '4611686018427387904' with 512 live, expected at most 4611686018427387904 in all"));
  EXPECT_THAT(Problem("a,1,4611686018427387904,0\nf,1,,0\na,1,4611686018427387904,0\n"), Eq("accepted"));
}

TEST(BaseFormat, RequiresTheHeader) {
  const auto problem = [](absl::string_view text) {
    return std::string(ParseBaseFormat(text, "t").status().message());
  };
  EXPECT_THAT(problem(""), Eq("t:1: the file holds no rows, expected the header op,id,bytes,stream"));
  EXPECT_THAT(problem("# nothing\n\n"), Eq("t:2: the file holds no rows, expected the header op,id,bytes,stream"));
  EXPECT_THAT(problem("# x\na,1,5,0\n"), Eq("t:2: 'a,1,5,0', expected the header op,id,bytes,stream"));
  EXPECT_THAT(problem("op,id,size,stream\n"), Eq("t:1: 'op,id,size,stream', expected the header op,id,bytes,stream"));
  EXPECT_THAT(problem("op,id,bytes\n"), Eq("t:1: 'op,id,bytes', expected the header op,id,bytes,stream"));
}

TEST(BaseFormat, HeaderOfFewerFieldsIsRefused) {
  // Found by fuzzing: the fields that are not there were handed to memcpy as null pointers.
  EXPECT_THAT(std::string(ParseBaseFormat("op\nm,step0,,\n", "t").status().message()),
              Eq("t:1: 'op', expected the header op,id,bytes,stream"));
  EXPECT_THAT(std::string(ParseBaseFormat(absl::string_view("\0\0", 2), "t").status().message()),
              Eq("t:1: '\\x00\\x00', expected the header op,id,bytes,stream"));
}

TEST(BaseFormat, LongAndBinaryValuesAreQuotedShort) {
  const std::string problem = Problem(absl::StrCat("a,1,", std::string(100000, '\xff'), ",0\n"));
  EXPECT_LT(problem.size(), 500u);
  EXPECT_THAT(problem, testing::HasSubstr("bytes '\\xff\\xff"));
}

TEST(BaseFormat, RefusesToWriteWhatWouldNotReadBack) {
  Trace trace;
  trace.events = {{TraceOp::kMark, 0, 0, 0}};
  for (const char* label : {"a,b", "a#b", "a\nb", "", " a", "a\t"}) {
    trace.labels = {label};
    EXPECT_EQ(FormatBaseFormat(trace).status().code(), absl::StatusCode::kInvalidArgument) << label;
  }
  trace.labels = {"fine"};
  EXPECT_TRUE(FormatBaseFormat(trace).ok());
  for (const char* extra : {"x", ",#", ",\n", ",x "}) {
    trace.extra_columns = {extra};
    EXPECT_EQ(FormatBaseFormat(trace).status().code(), absl::StatusCode::kInvalidArgument) << extra;
  }
  trace.extra_columns.clear();
  trace.extra_header = {"a,b"};
  EXPECT_EQ(FormatBaseFormat(trace).status().code(), absl::StatusCode::kInvalidArgument);
  trace.extra_header.clear();
  trace.labels.clear();
  EXPECT_EQ(FormatBaseFormat(trace).status().code(), absl::StatusCode::kInvalidArgument) << "not well-formed";
}

}  // namespace
}  // namespace expanse::bench

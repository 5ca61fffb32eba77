#include "bench/trace/reader.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "bench/trace/base_format.h"
#include "bench/trace/pickle_values_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::string_view kText = "op,id,bytes,stream\na,0,100,0\nm,step0,,\nf,0,,0\n";

absl::StatusOr<LoadedTrace> Parse(absl::string_view text, const ReadOptions& options = {}) {
  return ParseTrace(Input{"in", std::string(text), false}, options);
}

class WriteTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/expanse_reader_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    trace_ = ParseBaseFormat(kText, "t").value();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(absl::string_view name) const { return absl::StrCat(directory_, "/", name); }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) names.push_back(entry.path().filename());
    return names;
  }
  static std::string Contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  std::string directory_;
  Trace trace_;
};

TEST(ParseTrace, TellsTheFormatByContent) {
  const absl::StatusOr<LoadedTrace> base = Parse(kText);
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_EQ(base->format, TraceFormat::kBase);
  EXPECT_EQ(base->trace.name, "in");
  EXPECT_THAT(base->warnings, IsEmpty());

  const std::string snapshot =
      Pickled(PickledDict({{"device_traces", PickledList({PickledList({})})}, {"segments", PickledList({})}}));
  const absl::StatusOr<LoadedTrace> pickled = Parse(snapshot + "tail");
  ASSERT_TRUE(pickled.ok()) << pickled.status();
  EXPECT_EQ(pickled->format, TraceFormat::kPyTorchSnapshot);
  EXPECT_THAT(pickled->warnings,
              ElementsAre(HasSubstr("the 4 bytes after it are ignored"), HasSubstr("no allocation was recorded")));
}

TEST(ParseTrace, NamesFormatsItKnowsAndCannotRead) {
  const std::pair<absl::string_view, const char*> kFormats[] = {
      {"{\"segments\": []}", "JSON"},
      {" [1]", "JSON"},
      {"Thread,Time,Action,Pointer,Size,Stream\n", "an RMM log"},
      {"PK\x03\x04", "a zip archive"},
      {"\x28\xb5\x2f\xfd", "a zstd file"},
      {"BZh9", "a bzip2 file"},
      {"\xfd"
       "7zXZ",
       "an xz file"},
  };
  for (const auto& [text, name] : kFormats) {
    const absl::StatusOr<LoadedTrace> loaded = Parse(text);
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kUnimplemented) << name;
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(absl::StrCat("in: this is ", name)));
  }
  EXPECT_EQ(Parse("something else").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Parse("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ParseTrace, ADeviceCannotBeChosenInTheBaseFormat) {
  ReadOptions options;
  options.device = DeviceOrdinal(3);
  const absl::StatusOr<LoadedTrace> loaded = Parse(kText, options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->warnings, testing::ElementsAre(HasSubstr("in: --snapshot-device: '3' has no effect")));
}

TEST_F(WriteTraceTest, WritesPlainAndGzipThatReadBack) {
  for (const char* name : {"t.csv", "t.csv.gz"}) {
    ASSERT_TRUE(WriteTrace(trace_, Path(name)).ok());
    const absl::StatusOr<LoadedTrace> loaded = ReadTrace(Path(name));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->trace.events, trace_.events);
    EXPECT_EQ(loaded->trace.labels, trace_.labels);
    EXPECT_EQ(loaded->compressed, absl::string_view(name) == "t.csv.gz");
  }
  EXPECT_EQ(Contents(Path("t.csv")), kText);
  EXPECT_THAT(Files(), testing::UnorderedElementsAre("t.csv", "t.csv.gz"));
}

TEST_F(WriteTraceTest, GzipOfTheSameTraceIsTheSame) {
  ASSERT_TRUE(WriteTrace(trace_, Path("a.gz")).ok());
  ASSERT_TRUE(WriteTrace(trace_, Path("b.gz")).ok());
  EXPECT_EQ(Contents(Path("a.gz")), Contents(Path("b.gz")));
}

TEST_F(WriteTraceTest, ReplacesAFileKeepingItsPermissionsAndFollowsLinks) {
  std::ofstream(Path("real.csv")) << "old";
  ASSERT_EQ(chmod(Path("real.csv").c_str(), 0640), 0);
  ASSERT_EQ(symlink("real.csv", Path("link.csv").c_str()), 0);
  ASSERT_TRUE(WriteTrace(trace_, Path("link.csv")).ok());
  EXPECT_EQ(Contents(Path("real.csv")), kText);
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.csv")));
  struct stat now;
  ASSERT_EQ(stat(Path("real.csv").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 0777, 0640u);
}

TEST_F(WriteTraceTest, WritesIntoAPipeRatherThanReplacingIt) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(WriteTrace(trace_, Path("pipe")).ok());
  char buffer[256];
  const ssize_t n = read(reader, buffer, sizeof buffer);
  close(reader);
  ASSERT_GT(n, 0);
  EXPECT_EQ(absl::string_view(buffer, static_cast<size_t>(n)), kText);
  EXPECT_TRUE(std::filesystem::is_fifo(Path("pipe")));
}

TEST_F(WriteTraceTest, AFullDeviceIsAnErrorThatNamesThePath) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const absl::Status status = WriteTrace(trace_, "/dev/full");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full: cannot be written"));
}

TEST_F(WriteTraceTest, AWriteThatFailsHalfwayLeavesTheOldFileAndNothingElse) {
  std::ofstream(Path("t.csv")) << "old";
  // A file size limit stands in for a full disk: the write stops within the first row.
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit limit = {20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = WriteTrace(trace_, Path("t.csv"));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("t.csv: cannot be written"));
  EXPECT_EQ(Contents(Path("t.csv")), "old");
  EXPECT_THAT(Files(), ElementsAre("t.csv"));
}

TEST_F(WriteTraceTest, RefusesNamesItCannotHonour) {
  for (const char* name : {"t.pickle", "t.pkl", "t.json", "t.json.gz"}) {
    EXPECT_EQ(WriteTrace(trace_, Path(name)).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  const absl::Status absent = WriteTrace(trace_, Path("no/such/folder.csv"));
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.message()), HasSubstr("no/such/folder.csv"));
  EXPECT_FALSE(WriteTrace(trace_, directory_).ok());
  EXPECT_THAT(Files(), IsEmpty());
}

}  // namespace
}  // namespace expanse::bench

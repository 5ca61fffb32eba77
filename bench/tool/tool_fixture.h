// Runs the real binary.

#ifndef EXPANSE_BENCH_TOOL_TOOL_FIXTURE_H_
#define EXPANSE_BENCH_TOOL_TOOL_FIXTURE_H_

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::tool {

// What trace.csv in the folder holds.
inline constexpr const char* kTrace =
    "op,id,bytes,stream\n"
    "m,step0,,\n"
    "a,1,3000000,0\n"
    "a,2,1000,1\n"
    "f,1,,0\n"
    "m,step1,,\n"
    "a,3,4000000,0\n"
    "f,3,,0\n"
    "f,2,,1\n";

struct Outcome {
  int exit_status = -1;
  std::string out, err;
};

// A folder of its own for each test.
class ToolTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) /
        ("tool_test." + std::to_string(getpid()) + "." + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    Write("trace.csv", kTrace);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(Path(name)) << text; }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  bool Exists(const std::string& name) const { return std::filesystem::exists(Path(name)); }

  // Runs a shell command in the folder; `expanse` in it is the binary.
  Outcome Shell(const std::string& command) const {
    const std::string script = "cd '" + folder_.string() +
                               "' && expanse() { '" EXPANSE_TOOL_BINARY "' \"$@\"; } && { " + command +
                               "\n} >stdout.txt 2>stderr.txt";
    const int status = std::system(("bash -c" + Quote(script)).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("stdout.txt"), Read("stderr.txt")};
  }
  // For usage and input errors: exit status 2, nothing on the standard output, a message that starts with the name of
  // the command. Returns the message.
  std::string Error(const std::string& command) const {
    const Outcome outcome = Shell(command);
    EXPECT_EQ(outcome.exit_status, 2) << command;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_THAT(outcome.err, testing::StartsWith("expanse")) << command;
    EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("terminate"))) << command;
    return outcome.err;
  }

 private:
  // As an argument of /bin/sh.
  static std::string Quote(const std::string& text) {
    std::string quoted = " '";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  }

  std::filesystem::path folder_;
};

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_TOOL_FIXTURE_H_

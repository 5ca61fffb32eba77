// One command of the tool.

#ifndef EXPANSE_BENCH_TOOL_COMMAND_H_
#define EXPANSE_BENCH_TOOL_COMMAND_H_

#include <memory>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace expanse::tool {

// What the tool ends with. Scripts rely on the numbers.
enum ExitStatus : int {
  kDone = 0,
  kDidNotRun = 1,  // the trace ran out of memory (replay), or fits no capacity (fit)
  kError = 2,      // usage or input error
};

class Command {
 public:
  virtual ~Command() = default;
  // Adds the command's options, its help and its examples. The values land in the command, which must outlive `app`.
  virtual void Declare(CLI::App& app) = 0;
  // Does it. An error status is printed by the caller, and means kError.
  [[nodiscard]] virtual absl::StatusOr<ExitStatus> Run() = 0;
};

[[nodiscard]] std::unique_ptr<Command> MakeReplayCommand();
[[nodiscard]] std::unique_ptr<Command> MakeCompareCommand();
[[nodiscard]] std::unique_ptr<Command> MakeFitCommand();
[[nodiscard]] std::unique_ptr<Command> MakeConvertCommand();
[[nodiscard]] std::unique_ptr<Command> MakeGenerateCommand();
[[nodiscard]] std::unique_ptr<Command> MakeInspectCommand();

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_COMMAND_H_

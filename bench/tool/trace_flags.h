// The traces that commands read and write.

#ifndef EXPANSE_BENCH_TOOL_TRACE_FLAGS_H_
#define EXPANSE_BENCH_TOOL_TRACE_FLAGS_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/trace/reader.h"
#include "bench/trace/trace.h"

namespace expanse::tool {

// Where the trace comes from, or the traces.
struct TraceFlags {
  std::string path;
  std::vector<std::string> paths;
  bench::ReadOptions read;

  // `argument` names the positional argument, whose value becomes `path`.
  void Declare(CLI::App& app, const std::string& argument);
  // One or more, which become `paths`.
  void DeclareSeveral(CLI::App& app, const std::string& argument);
  // Reads one. Errors suggest the nearest file. Reservations go to the standard error.
  [[nodiscard]] absl::StatusOr<bench::LoadedTrace> Load() const { return Load(path); }
  [[nodiscard]] absl::StatusOr<bench::LoadedTrace> Load(const std::string& from) const;

 private:
  void DeclareReading(CLI::App& app);
};

// Writes a trace to a file, or for "-" to the standard output.
[[nodiscard]] absl::Status WriteTraceTo(const bench::Trace& trace, const std::string& path);

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_TRACE_FLAGS_H_

// The traces that commands read and write.

#ifndef EXPANSE_BENCH_TOOL_TRACE_FLAGS_H_
#define EXPANSE_BENCH_TOOL_TRACE_FLAGS_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/trace/reader.h"
#include "bench/trace/trace.h"

namespace expanse::tool {

// Where the trace comes from.
struct TraceFlags {
  std::string path;
  bench::ReadOptions read;

  // `argument` names the positional argument.
  void Declare(CLI::App& app, const std::string& argument);
  // Reads it. Errors suggest the nearest file. Reservations go to the standard error.
  [[nodiscard]] absl::StatusOr<bench::LoadedTrace> Load() const;
};

// Writes a trace to a file, or for "-" to the standard output.
[[nodiscard]] absl::Status WriteTraceTo(const bench::Trace& trace, const std::string& path);

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_TRACE_FLAGS_H_

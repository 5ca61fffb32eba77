// Reads a trace of any format that is known, told by its content; writes the base format.

#ifndef EXPANSE_BENCH_TRACE_READER_H_
#define EXPANSE_BENCH_TRACE_READER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/trace/input.h"
#include "bench/trace/trace.h"
#include "vmm/units.h"

namespace expanse::bench {

enum class TraceFormat {
  kBase,             // op,id,bytes,stream
  kPyTorchSnapshot,  // a pickle of torch.cuda.memory._dump_snapshot
};

// "base", "pytorch-snapshot"
[[nodiscard]] const char* ToString(TraceFormat format);

struct ReadOptions {
  Bytes max_input = kDefaultMaxInput;   // decompressed
  std::optional<DeviceOrdinal> device;  // of a snapshot, else the one with the most events; other formats have none
};

struct LoadedTrace {
  Trace trace;  // well-formed
  TraceFormat format = TraceFormat::kBase;
  bool compressed = false;
  std::vector<std::string> warnings;  // what was read with reservations, a sentence each, for stderr
};

// Reads `path` ("-": the standard input). kUnimplemented names a format that is recognised and cannot be read;
// kInvalidArgument names file, line or byte offset, value and what was expected. Memory stays within 64 MiB plus 64
// times the decompressed size. Blocks while it reads.
[[nodiscard]] absl::StatusOr<LoadedTrace> ReadTrace(const std::string& path, const ReadOptions& options = {});

// The same for contents that are in memory already.
[[nodiscard]] absl::StatusOr<LoadedTrace> ParseTrace(const Input& input, const ReadOptions& options = {});

// Writes the base format: gzip where `path` ends in .gz, plain otherwise, "-" is the standard output. A regular file
// appears whole or not at all: the trace is written beside it and renamed. kInvalidArgument for a name that promises
// another format (.pickle, .pkl, .json); errors of the system name the path. Blocks while it writes.
[[nodiscard]] absl::Status WriteTrace(const Trace& trace, const std::string& path);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_READER_H_

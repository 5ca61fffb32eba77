// Writing results to files and to the standard output.

#ifndef EXPANSE_BENCH_TOOL_OUTPUT_H_
#define EXPANSE_BENCH_TOOL_OUTPUT_H_

#include <string>

#include "absl/status/status.h"

namespace expanse::tool {

// Writes to the standard output at once. OK as well if its reader is gone (`expanse inspect FILE | head -1`): there is
// nobody left to tell. Otherwise what the system said.
[[nodiscard]] absl::Status WriteStandardOutput(const std::string& text);

// Writes a file, or for "-" the standard output. Errors name the path.
[[nodiscard]] absl::Status WriteOutput(const std::string& path, const std::string& text);

// Whether a file of that name can probably be written, so that a long run need not end in "no such directory". Touches
// nothing. OK for "-" and for an empty path, which stands for no output.
[[nodiscard]] absl::Status CheckWritable(const std::string& path);

// One line on the standard error: "expanse: warning: ...".
void Warn(const std::string& text);

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_OUTPUT_H_

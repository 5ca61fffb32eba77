#include "bench/trace/reader.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/trace/base_format.h"
#include "bench/trace/pickle.h"
#include "bench/trace/pytorch_snapshot.h"

namespace expanse::bench {
namespace {

// The name of a format that is told by its first bytes and cannot be read, or nothing.
absl::string_view RecognisedOnly(absl::string_view text) {
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text.substr(0, 4096));
  if (absl::StartsWith(start, "{") || absl::StartsWith(start, "[")) return "JSON (a snapshot converted by a tool?)";
  if (absl::StartsWith(start, "Thread,Time,Action,Pointer,Size,Stream")) return "an RMM log";
  if (absl::StartsWith(text, "PK\x03\x04"))
    return "a zip archive (torch.save writes these; _dump_snapshot writes a pickle)";
  if (absl::StartsWith(text, "\x28\xb5\x2f\xfd")) return "a zstd file";
  if (absl::StartsWith(text, "BZh")) return "a bzip2 file";
  if (absl::StartsWith(text,
                       "\xfd"
                       "7zXZ"))
    return "an xz file";
  return "";
}

absl::StatusOr<Trace> ParseSnapshot(const Input& input, const ReadOptions& options,
                                    std::vector<std::string>& warnings) {
  const absl::StatusOr<Pickle> pickle = Pickle::Parse(input.text, input.name);
  if (!pickle.ok()) return pickle.status();
  if (pickle->consumed() < input.text.size()) {
    warnings.push_back(absl::StrCat(input.name, ": the pickle ends at byte ", pickle->consumed(), "; the ",
                                    input.text.size() - pickle->consumed(), " bytes after it are ignored"));
  }
  return TraceFromPyTorchSnapshot(pickle->root(), pickle->consumed(), options.device, input.name, warnings);
}

}  // namespace

const char* ToString(TraceFormat format) { return format == TraceFormat::kBase ? "base" : "pytorch-snapshot"; }

absl::StatusOr<LoadedTrace> ParseTrace(const Input& input, const ReadOptions& options) {
  LoadedTrace loaded;
  loaded.compressed = input.compressed;
  absl::StatusOr<Trace> trace;
  if (Pickle::LooksLikePickle(input.text)) {
    loaded.format = TraceFormat::kPyTorchSnapshot;
    trace = ParseSnapshot(input, options, loaded.warnings);
  } else {
    const absl::string_view other = LooksLikeBaseFormat(input.text) ? "" : RecognisedOnly(input.text);
    if (!other.empty()) {
      return absl::UnimplementedError(
          absl::StrCat(input.name, ": this is ", other,
                       ", which cannot be read; expected the base format or a pickled PyTorch snapshot"));
    }
    if (options.device.has_value()) {
      loaded.warnings.push_back(absl::StrCat(input.name, ": --snapshot-device: '", options.device->value(),
                                             "' has no effect on a trace in the base format, which is of one device"));
    }
    loaded.format = TraceFormat::kBase;
    trace = ParseBaseFormat(input.text, input.name);
  }
  if (!trace.ok()) return trace.status();
  loaded.trace = *std::move(trace);
  return loaded;
}

absl::StatusOr<LoadedTrace> ReadTrace(const std::string& path, const ReadOptions& options) {
  const absl::StatusOr<Input> input = ReadInput(path, options.max_input);
  if (!input.ok()) return input.status();
  return ParseTrace(*input, options);
}

}  // namespace expanse::bench

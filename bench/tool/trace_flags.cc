#include "bench/tool/trace_flags.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/tool/flags.h"
#include "bench/tool/output.h"
#include "bench/tool/suggest.h"
#include "bench/trace/base_format.h"

namespace expanse::tool {

void TraceFlags::Declare(CLI::App& app, const std::string& argument) {
  app.add_option(argument, path, "A trace, plain or gzip, or a PyTorch memory snapshot; - reads the standard input")
      ->type_name("");
  DeclareReading(app);
}

void TraceFlags::DeclareSeveral(CLI::App& app, const std::string& argument) {
  app.add_option(argument, paths, "Traces, plain or gzip, or PyTorch memory snapshots; - reads the standard input")
      ->type_name("");
  DeclareReading(app);
}

void TraceFlags::DeclareReading(CLI::App& app) {
  AddSize(app, "--max-input", &read.max_input, "Refuse input that decompresses to more than this [4GiB]");
  auto parse = [](const std::string& text) -> absl::StatusOr<std::optional<DeviceOrdinal>> {
    absl::StatusOr<uint64_t> ordinal = ParseCount(text);
    if (!ordinal.ok()) return ordinal.status();
    if (*ordinal > 1023) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no device number"));
    return DeviceOrdinal(static_cast<int>(*ordinal));
  };
  AddParsed(app, "--snapshot-device", &read.device, parse, "N",
            "Which device of a snapshot [the one with the most events]");
}

absl::StatusOr<bench::LoadedTrace> TraceFlags::Load(const std::string& from) const {
  if (from.empty()) return absl::InvalidArgumentError("no trace is named; - reads the standard input");
  absl::StatusOr<bench::LoadedTrace> loaded = bench::ReadTrace(from, read);
  if (!loaded.ok()) {
    std::error_code error;
    const bool missing = from != "-" && !std::filesystem::exists(from, error);
    if (!missing) return loaded.status();
    return absl::NotFoundError(absl::StrCat(loaded.status().message(), DidYouMeanFile(from)));
  }
  for (const std::string& warning : loaded->warnings) Warn(warning);
  return loaded;
}

absl::Status WriteTraceTo(const bench::Trace& trace, const std::string& path) {
  if (path != "-") return bench::WriteTrace(trace, path);
  const absl::StatusOr<std::string> text = bench::FormatBaseFormat(trace);
  return text.ok() ? WriteStandardOutput(*text) : text.status();
}

}  // namespace expanse::tool

#include "bench/tool/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace expanse::tool {
namespace {

absl::Status SystemError(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

}  // namespace

absl::Status WriteStandardOutput(const std::string& text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return absl::OkStatus();
  return SystemError("writing the standard output", errno);
}

absl::Status WriteOutput(const std::string& path, const std::string& text) {
  if (path == "-") return WriteStandardOutput(text);
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return SystemError(absl::StrCat("cannot write '", path, "'"), errno);
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = errno;
  if (std::fclose(file) != 0 && written) {
    written = false;
    error = errno;
  }
  return written ? absl::OkStatus() : SystemError(absl::StrCat("cannot write '", path, "'"), error);
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty() || path == "-") return absl::OkStatus();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return SystemError(absl::StrCat("cannot write '", path, "'"), EISDIR);
  if (access(path.c_str(), F_OK) == 0) {
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus()
                                           : SystemError(absl::StrCat("cannot write '", path, "'"), errno);
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return SystemError(absl::StrCat("cannot write '", path, "'"), errno);
}

void Warn(const std::string& text) { std::fprintf(stderr, "expanse: warning: %s\n", text.c_str()); }

}  // namespace expanse::tool

// WriteTrace of reader.h.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/trace/base_format.h"
#include "bench/trace/reader.h"

namespace expanse::bench {
namespace {

absl::Status SystemError(absl::string_view path, absl::string_view what) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", what));
}

absl::Status WriteAll(int fd, absl::string_view bytes, absl::string_view path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path, "cannot be written");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// `text` as one gzip member without a time stamp: the same text gives the same bytes.
std::string Gzip(absl::string_view text) {
  z_stream stream = {};
  // 15 window bits, and 16 more for a gzip wrapper. Fails only for want of memory, which is fatal in this project.
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string compressed;
  std::vector<char> out(64 << 10);
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const absl::string_view piece = text.substr(0, 1 << 30);  // avail_in is 32 bits wide
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
      text.remove_prefix(piece.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    result = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    compressed.append(out.data(), out.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return compressed;
}

// Writes into what is there already: a terminal, a pipe, a device. Replacing such a thing by a file would destroy it.
absl::Status WriteInPlace(const std::string& path, absl::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(path, "cannot be opened for writing");
  absl::Status status = WriteAll(fd, bytes, path);
  if (close(fd) != 0 && status.ok()) status = SystemError(path, "cannot be written");
  return status;
}

// Writes a new file beside `path` and renames it, so that `path` is never seen in part.
absl::Status WriteByRename(const std::string& path, absl::string_view bytes, const struct stat* existing) {
  const std::string temporary = absl::StrCat(path, ".tmp", getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return SystemError(temporary, "cannot be created");
  absl::Status status = WriteAll(fd, bytes, path);
  if (status.ok() && existing != nullptr && fchmod(fd, existing->st_mode & 07777) != 0) {
    status = SystemError(path, "cannot be given the permissions of the file it replaces");
  }
  if (close(fd) != 0 && status.ok()) status = SystemError(path, "cannot be written");
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) status = SystemError(path, "cannot be replaced");
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace

absl::Status WriteTrace(const Trace& trace, const std::string& path) {
  for (const absl::string_view ending : {".pickle", ".pkl", ".json", ".json.gz"}) {
    if (absl::EndsWith(path, ending)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": traces are written in the base format, expected a name in .csv or .csv.gz"));
    }
  }
  absl::StatusOr<std::string> text = FormatBaseFormat(trace);
  if (!text.ok()) return text.status();
  const std::string bytes = absl::EndsWith(path, ".gz") ? Gzip(*text) : *std::move(text);
  if (path == "-") return WriteAll(STDOUT_FILENO, bytes, "<standard output>");

  struct stat existing;
  if (stat(path.c_str(), &existing) != 0) {
    if (errno != ENOENT) return SystemError(path, "cannot be written");
    return WriteByRename(path, bytes, nullptr);
  }
  if (!S_ISREG(existing.st_mode)) return WriteInPlace(path, bytes);
  // A symbolic link stays one: what it points to is replaced.
  char* const target = realpath(path.c_str(), nullptr);
  if (target == nullptr) return SystemError(path, "cannot be resolved");
  const absl::Status status = WriteByRename(target, bytes, &existing);
  free(target);
  return status;
}

}  // namespace expanse::bench

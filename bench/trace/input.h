// Reads a file or the standard input into memory, decompressing gzip on the way.

#ifndef EXPANSE_BENCH_TRACE_INPUT_H_
#define EXPANSE_BENCH_TRACE_INPUT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "vmm/units.h"

namespace expanse::bench {

// What a trace may decompress to unless the user says otherwise.
inline constexpr Bytes kDefaultMaxInput = GiB(4);

// The whole of a file, decompressed.
struct Input {
  std::string name;  // the path as given, or "<standard input>"
  std::string text;
  bool compressed = false;
};

// Turns the bytes of a file, which may arrive in pieces, into its contents: gzip (one member or several, told by its
// magic number, zero padding after the last allowed) is decompressed, anything else is kept as it is. Not thread-safe.
//
// Holds the decompressed text, at most `max_size`, and 64 KiB besides; a string that grows costs up to three times its
// length for a moment.
class InputDecoder {
 public:
  InputDecoder(std::string name, Bytes max_size);
  ~InputDecoder();
  InputDecoder(const InputDecoder&) = delete;
  InputDecoder& operator=(const InputDecoder&) = delete;

  // The next bytes of the file. kInvalidArgument names the file and the offset in it where the gzip stream is corrupt;
  // kResourceExhausted says that the contents exceed `max_size`. After an error the decoder is of no further use.
  [[nodiscard]] absl::Status Feed(absl::string_view bytes);

  // The contents, once the whole file was fed. kInvalidArgument when the gzip stream stops short.
  [[nodiscard]] absl::StatusOr<Input> Finish();

 private:
  class Inflater;

  [[nodiscard]] absl::Status Decode(absl::string_view bytes);
  [[nodiscard]] absl::Status Append(absl::string_view text);

  const Bytes max_size_;
  Input input_;
  std::string head_;  // the first bytes, while there are too few to tell what the file is
  bool decided_ = false;
  std::unique_ptr<Inflater> inflater_;  // set when the file is gzip
};

// Reads `path`, or the standard input for "-". kNotFound, kPermissionDenied and the like name the path and say what the
// system said; otherwise errors are InputDecoder's. Blocks while it reads.
[[nodiscard]] absl::StatusOr<Input> ReadInput(const std::string& path, Bytes max_size = kDefaultMaxInput);

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_INPUT_H_

#include "bench/trace/input.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace expanse::bench {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr absl::string_view kGzipMagic("\x1f\x8b", 2);

}  // namespace

// The gzip side of the decoder: zlib's state, and where in the file it is.
class InputDecoder::Inflater {
 public:
  Inflater() {
    // 15 window bits, and 16 more for a gzip wrapper. Fails only for want of memory, which is fatal in this project.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }

  absl::Status Feed(absl::string_view bytes, InputDecoder& to) {
    absl::Status status;
    while (status.ok() && !bytes.empty()) status = between_members_ ? BeginMember(bytes, to) : Inflate(bytes, to);
    return status;
  }

  absl::Status Finish(const InputDecoder& from) const {
    if (between_members_ && seen_magic_ == 0) return absl::OkStatus();
    return Corrupt(from, "the gzip stream stops short, expected more bytes");
  }

 private:
  // Takes bytes off the front of `bytes` until they are used up or the member ends.
  absl::Status Inflate(absl::string_view& bytes, InputDecoder& to) {
    do {
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream_.avail_in = static_cast<uInt>(bytes.size());
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const size_t taken = bytes.size() - stream_.avail_in;
      offset_ += taken;
      bytes.remove_prefix(taken);
      const absl::Status status = to.Append(absl::string_view(out_.data(), out_.size() - stream_.avail_out));
      if (!status.ok()) return status;
      if (result == Z_STREAM_END) {
        between_members_ = true;
        inflateReset(&stream_);
        return absl::OkStatus();
      }
      if (result != Z_OK && result != Z_BUF_ERROR) {
        return Corrupt(to, stream_.msg != nullptr ? stream_.msg : "not a gzip stream");
      }
    } while (!bytes.empty() || stream_.avail_out == 0);
    return absl::OkStatus();
  }

  // Between two members, or after the last: a further member's magic number, or zeros to the end. The magic number is
  // taken byte by byte, for it may lie across two pieces; zlib gets it afterwards.
  absl::Status BeginMember(absl::string_view& bytes, InputDecoder& to) {
    const char c = bytes.front();
    if (c == '\0' && seen_magic_ == 0) {
      padded_ = true;
    } else if (c == kGzipMagic[seen_magic_] && !padded_) {
      ++seen_magic_;
    } else {
      return Corrupt(to, absl::StrCat("0x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2),
                                      " after a gzip member, expected another member, zero padding or the end"));
    }
    bytes.remove_prefix(1);
    ++offset_;
    if (seen_magic_ < kGzipMagic.size()) return absl::OkStatus();
    seen_magic_ = 0;
    between_members_ = false;
    offset_ -= kGzipMagic.size();
    absl::string_view magic = kGzipMagic;
    return Inflate(magic, to);
  }

  absl::Status Corrupt(const InputDecoder& in, absl::string_view problem) const {
    return absl::InvalidArgumentError(
        absl::StrCat(in.input_.name, ": byte ", offset_, " of the compressed file: ", problem));
  }

  z_stream stream_ = {};
  std::vector<char> out_ = std::vector<char>(kPiece);
  uint64_t offset_ = 0;  // in the compressed file
  bool between_members_ = false;
  bool padded_ = false;    // zeros were seen after a member: no further one may follow
  size_t seen_magic_ = 0;  // bytes of the next member's magic number
};

InputDecoder::InputDecoder(std::string name, Bytes max_size) : max_size_(max_size) { input_.name = std::move(name); }
InputDecoder::~InputDecoder() = default;

absl::Status InputDecoder::Feed(absl::string_view bytes) {
  if (decided_) return Decode(bytes);
  absl::StrAppend(&head_, bytes);
  if (head_.size() < kGzipMagic.size()) return absl::OkStatus();
  decided_ = true;
  if (absl::StartsWith(head_, kGzipMagic)) {
    inflater_ = std::make_unique<Inflater>();
    input_.compressed = true;
  }
  return Decode(std::exchange(head_, std::string()));
}

absl::Status InputDecoder::Decode(absl::string_view bytes) {
  return inflater_ != nullptr ? inflater_->Feed(bytes, *this) : Append(bytes);
}

absl::Status InputDecoder::Append(absl::string_view text) {
  if (text.size() > max_size_.count() - input_.text.size()) {
    return absl::ResourceExhaustedError(absl::StrCat(input_.name, ": holds more than ", ToString(max_size_),
                                                     input_.compressed ? " decompressed" : "",
                                                     ", the most that may be read; raise --max-input to read it"));
  }
  absl::StrAppend(&input_.text, text);
  return absl::OkStatus();
}

absl::StatusOr<Input> InputDecoder::Finish() {
  const absl::Status status =
      inflater_ != nullptr ? inflater_->Finish(*this) : Append(std::exchange(head_, std::string()));
  if (!status.ok()) return status;
  return std::move(input_);
}

absl::StatusOr<Input> ReadInput(const std::string& path, Bytes max_size) {
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "<standard input>" : path;
  const int fd = standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(name, ": cannot be opened"));

  InputDecoder decoder(name, max_size);
  std::vector<char> piece(kPiece);
  absl::Status status;
  while (status.ok()) {
    const ssize_t n = read(fd, piece.data(), piece.size());
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    status = n < 0 ? absl::ErrnoToStatus(errno, absl::StrCat(name, ": cannot be read"))
                   : decoder.Feed(absl::string_view(piece.data(), static_cast<size_t>(n)));
  }
  if (!standard_input) close(fd);
  if (!status.ok()) return status;
  return decoder.Finish();
}

}  // namespace expanse::bench

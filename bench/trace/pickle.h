// Reads a Python pickle of plain data and runs nothing.
//
// A pickle is a program for a small stack machine, and the full machine can import and call anything. This one knows
// only the opcodes that build None, bool, int, float, str, bytes, list, tuple, set and dict, as Python's pickle module
// and PyTorch's C++ pickler write them in protocols 2 to 5. Whatever would import, call, or load from outside is
// refused.

#ifndef EXPANSE_BENCH_TRACE_PICKLE_H_
#define EXPANSE_BENCH_TRACE_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace expanse::bench {

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInt,     // fits 64 bits, signed
  kBigInt,  // any other integer
  kFloat,
  kString,
  kBytes,
  kList,
  kTuple,
  kSet,
  kDict,
};

class Pickle;

// One value of a Pickle, which must outlive it. Cheap to copy. A value may be reachable along several paths, and may
// contain itself: whoever walks the values bounds the walk.
class PickleValue {
 public:
  [[nodiscard]] PickleKind kind() const;
  [[nodiscard]] bool is_sequence() const { return kind() == PickleKind::kList || kind() == PickleKind::kTuple; }
  [[nodiscard]] bool is_dict() const { return kind() == PickleKind::kDict; }

  // Nothing unless the value is of that type and within that range. O(1).
  [[nodiscard]] std::optional<bool> AsBool() const;
  [[nodiscard]] std::optional<int64_t> AsInt64() const;
  [[nodiscard]] std::optional<uint64_t> AsUint64() const;
  [[nodiscard]] std::optional<double> AsDouble() const;
  [[nodiscard]] std::optional<absl::string_view> AsString()
      const;  // the bytes of a str, UTF-8 as far as the file is honest

  // Items of a list, tuple or set; entries of a dict, each counted as often as it was set. 0 for all else.
  [[nodiscard]] uint32_t size() const;

  // For messages: "-5", "'abc'", "a list of 3". At most about 60 characters, printable.
  [[nodiscard]] std::string Describe() const;

 private:
  friend class Pickle;
  friend class PickleCursor;
  friend class PickleMachine;
  PickleValue(const Pickle* pickle, uint32_t node) : pickle_(pickle), node_(node) {}

  const Pickle* pickle_;
  uint32_t node_;
};

// Walks the items of a container in order; of a dict key, value, key, value.
//   for (PickleCursor items(list); items.HasNext();) Use(items.Next());
class PickleCursor {
 public:
  explicit PickleCursor(PickleValue container);
  [[nodiscard]] bool HasNext() const { return link_ != 0; }
  PickleValue Next();

 private:
  const Pickle* pickle_;
  uint32_t link_;
};

// The values of one pickle, as a graph: what the file shares by its memo is shared here too, never copied, so a small
// file stays small. Items hang in linked lists of indices; nothing recurses, so depth costs nothing.
//
// Invariants: every index of a link or node is within its arena; nodes and links number at most one, and two, per byte
// of the file. Memory is at most 40 bytes per byte of the file, plus 1 MiB. Immutable once parsed, hence thread-safe.
class Pickle {
 public:
  // Parses `data`, which must outlive the result. kInvalidArgument names `name`, the byte offset, the opcode, and what
  // was expected. O(length of data).
  [[nodiscard]] static absl::StatusOr<Pickle> Parse(absl::string_view data, absl::string_view name);

  [[nodiscard]] PickleValue root() const { return PickleValue(this, root_); }
  // Bytes up to and including the end of the pickle; what follows is not looked at.
  [[nodiscard]] size_t consumed() const { return consumed_; }

  // Whether `data` begins as a pickle of protocol 2 or above does.
  [[nodiscard]] static bool LooksLikePickle(absl::string_view data);

 private:
  friend class PickleMachine;
  friend class PickleValue;
  friend class PickleCursor;

  struct Node {
    PickleKind kind;
    uint32_t count;  // str, bytes, big int: length; containers: items or entries
    uint64_t
        payload;  // int: the value; float: its bits; str, bytes, big int: offset; containers: first << 32 | last link
  };
  // One item of a container. Link 0 is never used: as `next` it means "the last".
  struct Link {
    uint32_t node;
    uint32_t next;
  };
  // A growing array that never moves its elements, so that growth needs no room for a second copy.
  template <typename T>
  class Arena {
   public:
    [[nodiscard]] uint32_t size() const { return size_; }
    T& operator[](uint32_t i) { return chunks_[i >> kChunkBits][i & kChunkMask]; }
    const T& operator[](uint32_t i) const { return chunks_[i >> kChunkBits][i & kChunkMask]; }
    uint32_t Add(const T& value) {
      if ((size_ & kChunkMask) == 0) chunks_.push_back(std::make_unique<T[]>(kChunkMask + 1));
      (*this)[size_] = value;
      return size_++;
    }

   private:
    static constexpr uint32_t kChunkBits = 12;
    static constexpr uint32_t kChunkMask = (1u << kChunkBits) - 1;
    std::vector<std::unique_ptr<T[]>> chunks_;
    uint32_t size_ = 0;
  };

  explicit Pickle(absl::string_view data) : data_(data) {}

  absl::string_view data_;
  Arena<Node> nodes_;
  Arena<Link> links_;
  uint32_t root_ = 0;
  size_t consumed_ = 0;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_PICKLE_H_

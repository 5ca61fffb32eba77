// The stack machine that a pickle is a program for, cut down to plain data.

#ifndef EXPANSE_BENCH_TRACE_PICKLE_MACHINE_H_
#define EXPANSE_BENCH_TRACE_PICKLE_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/trace/pickle.h"
#include "bench/trace/pickle_input.h"

namespace expanse::bench {

// Runs one pickle, once. The opcodes and their arguments are those of Python's pickletools, protocols 2 to 5.
//
// Invariants: stack and memo hold indices of nodes; marks are positions in the stack, ascending, none above its top.
// Each opcode, at least one byte, adds at most one node, one entry of the stack or the memo, and one mark; a link is
// added for an entry that leaves the stack. Hence memory stays in proportion to the bytes read.
class PickleMachine {
 public:
  PickleMachine(absl::string_view data, absl::string_view name) : input_(data, name), pickle_(data) {}

  [[nodiscard]] absl::StatusOr<Pickle> Run();

 private:
  using Node = Pickle::Node;

  // One opcode, whose arguments are next in the input; `done` becomes true at STOP.
  [[nodiscard]] absl::Status Step(uint8_t opcode, bool& done);

  [[nodiscard]] absl::Status PushSpan(PickleKind kind, int length_width);  // str and bytes
  [[nodiscard]] absl::Status PushLong(int length_width);                   // an integer of any length
  [[nodiscard]] absl::Status PushInt(int width, bool sign);
  [[nodiscard]] absl::Status PushFloat();
  void Push(PickleKind kind, uint64_t payload = 0, uint32_t count = 0) {
    stack_.push_back(pickle_.nodes_.Add({kind, count, payload}));
  }

  [[nodiscard]] absl::Status Need(size_t values) const;   // as many values above the topmost mark
  [[nodiscard]] absl::Status TakeMark(size_t& position);  // `position`: of the lowest value above that mark

  // These take the values from stack position `from` to the top.
  void PushContainer(PickleKind kind, size_t from);
  void MoveInto(uint32_t container, size_t from);
  // The container lies right below.
  [[nodiscard]] absl::Status ExtendAt(PickleKind kind, size_t from);
  [[nodiscard]] absl::Status Extend(PickleKind kind, size_t values);
  [[nodiscard]] absl::Status ExtendFromMark(PickleKind kind);

  [[nodiscard]] absl::Status Get(int width);
  [[nodiscard]] absl::Status Put(uint64_t index);

  [[nodiscard]] absl::Status Error(absl::string_view problem) const { return input_.Error(problem); }

  PickleInput input_;
  Pickle pickle_;
  uint64_t memoized_ = 0;  // what MEMOIZE numbers next
  std::vector<uint32_t> stack_;
  std::vector<uint32_t> marks_;
  std::vector<uint32_t> memo_;  // node + 1, 0 where there is none
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_TRACE_PICKLE_MACHINE_H_

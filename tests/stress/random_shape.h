// What a random program is like: its device, its allocator's options and its habits.

#ifndef EXPANSE_TESTS_STRESS_RANDOM_SHAPE_H_
#define EXPANSE_TESTS_STRESS_RANDOM_SHAPE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "core/options.h"
#include "core/process_budgets.h"
#include "tests/stress/choices.h"
#include "tests/stress/stress_device.h"
#include "vmm/units.h"

namespace expanse::stress {

// There are two kinds. Small devices whose chunks are all of one size are where every slot is fought for. The default
// options make larger chunks only while plenty is left, so that a device of their kind is huge, and others have taken
// all but a part of it, which is where memory runs out.
struct RandomShape {
  Bytes total;                     // memory of the device
  Bytes memory;                    // what others leave of it at first
  Bytes slot;                      // what chunks are multiples of
  AllocatorOptions options;        // but for callbacks and the clock
  uint64_t streams = 1;            // 1 to 8, the first of them the legacy default stream
  uint64_t checked_every = 1;      // operations; looking at the slots of huge devices takes long
  bool per_thread_stream = false;  // the second stream is the thread's default stream, and other threads have theirs
  bool frees_when_asked = false;   // an out-of-memory callback frees a block
  bool vetoes = false;             // a mapping callback does not let every chunk go
  bool neighbour = false;          // another process takes memory and gives it back
  bool device_gives_back_late = false;
  std::optional<Bytes> addresses;   // all that the process may reserve
  std::optional<uint64_t> handles;  // and create
  bool background = false;  // memory is created ahead by another thread too, so that a seed no longer fixes everything

  // All of it from the choices, always in the same order.
  [[nodiscard]] static RandomShape Draw(Choices& choices);
  // The device for it, whose memory is real.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<StressDevice>> OpenDevice() const;
  // The options, with the device's virtual time as the clock of what they say about time.
  [[nodiscard]] AllocatorOptions OptionsOn(StressDevice& device) const;
};

// The budgets of the process are what a shape says, beyond what is taken, for as long as it lives.
class ShapeBudgets {
 public:
  explicit ShapeBudgets(const RandomShape& shape);
  ~ShapeBudgets();
  ShapeBudgets(const ShapeBudgets&) = delete;
  ShapeBudgets& operator=(const ShapeBudgets&) = delete;

 private:
  const ProcessBudgets before_;
};

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_RANDOM_SHAPE_H_

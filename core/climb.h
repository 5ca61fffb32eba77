// One request's way up the out-of-memory ladder.

#ifndef EXPANSE_CORE_CLIMB_H_
#define EXPANSE_CORE_CLIMB_H_

#include <cstdint>

#include "vmm/units.h"

namespace expanse {

// What a request that no free block fitted has tried, and how often it may still try what other threads could make
// worth trying for ever. Each request has one of its own; guarded by the allocator's lock.
class Climb {
 public:
  static constexpr int kCallbackRounds = 4;
  static constexpr int kContextWaits = 4;
  static constexpr int kHorizons = 8;

  // `refusals`: how often the device has refused to create so far.
  explicit Climb(uint64_t refusals) : refusals_before_(refusals) {}

  // Refusals of the device before this number say nothing about this request: there may be memory by now.
  [[nodiscard]] uint64_t refusals_before() const { return refusals_before_; }
  void NoteDeviceHasMore(uint64_t refusals) { refusals_before_ = refusals; }

  // An attempt failed for which so much was created; or nobody needs to release them any more.
  void AddCreated(Bytes size) { created_ += size; }
  [[nodiscard]] Bytes created() const { return created_; }

  // Other allocators are asked once, and once more after each thing that may have made their memory idle.
  [[nodiscard]] bool MayAskOthers() const { return !others_asked_; }
  void NoteOthersAsked() {
    others_asked_ = true;
    ++others_asked_times_;
  }

  // Callbacks are asked until none of them asks to try again, and kCallbackRounds times at most.
  [[nodiscard]] bool MayCall() const { return callback_rounds_ < callback_rounds_allowed_; }
  void NoteCalled(bool again) {
    ++callback_rounds_;
    if (!again) callback_rounds_allowed_ = callback_rounds_;
    others_asked_ = false;
  }

  // Whether to wait for memory that was freed at this number, `latest` being the last free so far. What others free
  // while this request waits is waited for too, but the end of the queue is looked for no more than kHorizons times.
  [[nodiscard]] bool MayWaitFor(uint64_t number, uint64_t latest) {
    if (number > horizon_) {
      if (horizons_left_ == 0) return false;
      --horizons_left_;
      horizon_ = latest;
    }
    return true;
  }
  [[nodiscard]] bool MayWaitForContext() const { return context_waits_ < kContextWaits; }
  void NoteWaitedForContext() { ++context_waits_; }
  void NoteWaited() {
    ++waits_;
    others_asked_ = false;
  }

  [[nodiscard]] int others_asked_times() const { return others_asked_times_; }
  [[nodiscard]] int callback_rounds() const { return callback_rounds_; }
  [[nodiscard]] int waits() const { return waits_; }

 private:
  uint64_t refusals_before_;
  Bytes created_;
  bool others_asked_ = false;
  int others_asked_times_ = 0;
  int callback_rounds_ = 0;
  int callback_rounds_allowed_ = kCallbackRounds;
  uint64_t horizon_ = 0;
  int horizons_left_ = kHorizons;
  int context_waits_ = 0;
  int waits_ = 0;
};

}  // namespace expanse

#endif  // EXPANSE_CORE_CLIMB_H_

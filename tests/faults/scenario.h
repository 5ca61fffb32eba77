// A program that grows, moves, trims and frees on a simulated device, with faults at chosen driver calls.

#ifndef EXPANSE_TESTS_FAULTS_SCENARIO_H_
#define EXPANSE_TESTS_FAULTS_SCENARIO_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/allocator.h"
#include "tests/faults/hooked_driver.h"
#include "vmm/sim/simulator.h"

namespace expanse::faults {

// What goes wrong, and when.
struct Fault {
  uint64_t at = 0;  // the number of the call, from 1; 0: none
  abi::Result result = abi::kUnknown;
  bool sticky = false;      // the context breaks just before that call
  bool persistent = false;  // all calls of that entry point fail from there on
  bool undo_too = false;    // the next cuMemUnmap or cuMemRelease of the same step fails as well
};

enum class Steps {
  kGrowth,    // grow, move, trim and free on several streams
  kTenants,   // pools and pins
  kGiveBack,  // memory is created ahead, and given back
  kLadder,    // every rung of the out-of-memory ladder, in the presence of another allocator
};

[[nodiscard]] inline std::string NameOf(Growth growth) {
  return growth == Growth::kLazy ? "lazy" : growth == Growth::kFrugal ? "frugal" : "balanced";
}

struct Settings {
  Steps steps = Steps::kGrowth;
  sim::Quirks quirks;
  Growth growth = Growth::kLazy;
  sim::MemoryMode memory = sim::MemoryMode::kAccounting;
};

// Runs the steps in order. After each, whatever happened: the allocator's invariants hold, its figures are those of the
// simulator and of the program, live blocks are mapped and hold what was written to them, and quarantined addresses are
// not handed out. A step that a fault made fail must say so clearly, and must succeed when it is made again after the
// fault is gone. At the end everything that is not in quarantine can be trimmed, nothing is on the books after
// destruction, and there was no hazard.
//
// A sticky error is never gone: from there on requests may fail, clearly; frees do not. The books must be right all the
// same, which shows when the simulator mends the context just before the end, as no driver would.
class Scenario {
 public:
  Scenario(const Settings& settings, const Fault& fault);
  ~Scenario();

  // Called before each step, by its number, for faults that are no failed calls.
  std::function<void(int step)> before_step;
  // Requests may run out of memory: then this is called, which must make memory available, and they are made again.
  std::function<void()> relieve;

  void Run();

  // What was called in the whole run.
  [[nodiscard]] const std::vector<DriverCall>& calls() const { return calls_; }
  [[nodiscard]] int steps() const { return step_; }
  [[nodiscard]] bool fault_hit() const { return hit_; }
  // Whether the undoing of the failed call failed too.
  [[nodiscard]] bool undo_hit() const { return undo_hit_; }
  [[nodiscard]] sim::Simulator& simulator() { return *sim_; }
  // As they were before the allocator was destroyed.
  [[nodiscard]] const Stats& stats() const { return last_stats_; }

 private:
  struct Block {
    DeviceAddress begin;
    Bytes size;
    uint64_t seed;
  };

  void OnCall(const DriverCall& call);
  // Makes a step and checks all that a step must leave behind, again if the fault made it fail.
  void Step(const char* what, absl::StatusCode expected, const std::function<absl::Status()>& step);
  void CheckFailure(const absl::Status& status) const;
  void CheckState();
  // No fault is injected from here on. Sticky errors stay.
  void EndFault();

  void Create();
  // In a pool by name, or the default one.
  void Allocate(char name, Bytes size, int stream, std::optional<char> pool = std::nullopt);
  void AllocateInVain(Bytes size, int stream, std::optional<char> pool = std::nullopt);
  void Free(char name, std::optional<int> stream = std::nullopt);
  void RecordUse(char name, int stream);
  void Trim(Bytes target);
  void DestroyStream(int stream);
  void Work(char name, int stream, bool writes);
  void CreatePool(char name, std::optional<Bytes> limit, bool deterministic);
  void TrimPool(char pool, Bytes target);
  void RetirePool(char pool);
  void Pin(char name, Bytes offset, Bytes length);
  void UnpinAll();
  void Prewarm(Bytes target, PrewarmMode mode);
  void TrimWaiting(Bytes target);
  void TrimUnused();
  void CreatePeer(Bytes idle);
  void DestroyPeer();
  void OfferHostage(char name);
  void AddCallback();
  void RunGrowth();
  void RunTenants();
  void RunGiveBack();
  void RunLadder();
  // None if the pool could not be had, in a broken context.
  std::optional<PoolId> Find(std::optional<char> pool) const;
  // Makes the simulator forget its sticky error.
  void Mend();
  void Finish();

  void Write(const Block& block) const;
  void CheckContents(const Block& block) const;

  const Settings settings_;
  const Fault fault_;
  std::unique_ptr<sim::Simulator> sim_;
  std::unique_ptr<HookedDriver> hooked_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Allocator> peer_;
  uint64_t lost_by_peer_ = 0;  // chunks, by the time that it was destroyed
  abi::Context context_ = nullptr;
  std::array<abi::Stream, 3> streams_{};

  std::map<char, Block> live_;
  std::map<char, PoolId> pools_;
  std::optional<char> hostage_;        // what callbacks may free
  std::chrono::nanoseconds clock_{0};  // of trim_after
  std::vector<AddressRange> pinned_;
  Bytes kept_addresses_;  // which the driver would not take back, asked twice
  uint64_t seed_ = 0;
  std::vector<DriverCall> calls_;
  int step_ = 0;
  bool armed_ = true;    // the fault has not been ended
  bool hit_ = false;     // the fault has happened
  bool sticky_ = false;  // the context is broken
  bool broke_ = false;   // it was, at some time
  bool destroying_ = false;
  bool counting_ = true;  // calls have numbers
  bool undo_armed_ = false;
  bool undo_hit_ = false;
  std::vector<AddressRange> quarantined_;  // what must never be handed out again
  sim::Ledger left_by_create_;             // by an attempt that failed
  Stats last_stats_;
};

}  // namespace expanse::faults

#endif  // EXPANSE_TESTS_FAULTS_SCENARIO_H_

// One row of the table that says how a CUDA driver behaves: a call in a given situation and the result it must have.

#ifndef EXPANSE_TESTS_DRIVER_SPEC_ROW_H_
#define EXPANSE_TESTS_DRIVER_SPEC_ROW_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/driver_spec/world.h"
#include "vmm/abi.h"
#include "vmm/driver.h"
#include "vmm/sim/config.h"

namespace expanse::driver_spec {

// How sure it is that NVIDIA's driver does so.
enum class Grade {
  kDocumented,  // stated in cuda.h or the CUDA Programming Guide
  kTested,      // a public test that its authors ran against NVIDIA's driver expects it
  kReliedUpon,  // public code depends on it
  kContested,   // weak, second-hand, or contradicted elsewhere
  kAssumed,     // sources are silent: assumed, and reported rather than tested on a real driver
};

struct Row {
  std::string id;  // "map.size_zero"
  EntryPoint entry_point;
  Grade grade;
  // The simulator's result first, then others that a real driver may give.
  std::vector<int> codes;
  // Brings the situation about, makes the call, and returns its result. Must leave behind what the world's books say.
  std::function<int(World&)> call;

  World::Start start = World::Start::kFull;
  bool simulator_only = false;  // would crash a real driver, spoil its process, or ask about the simulator's scope
  bool needs_two_devices = false;
  bool breaks_contract = false;  // undefined by the documentation: the simulator answers and records a hazard
  // A point on which sources are silent, decided the other way, and the result it then has.
  std::function<void(sim::Quirks&)> quirk = nullptr;
  std::vector<int> quirk_codes = {};
  // Limits that bring the situation about in the simulator.
  std::function<void(sim::Config&)> configure = nullptr;

  Row SimulatorOnly() && { return simulator_only = true, std::move(*this); }
  Row TwoDevices() && { return needs_two_devices = true, std::move(*this); }
  Row Breach() && { return breaks_contract = true, std::move(*this); }
  Row From(World::Start value) && { return start = value, simulator_only = true, std::move(*this); }
  Row Configured(std::function<void(sim::Config&)> value) && {
    return configure = std::move(value), simulator_only = true, std::move(*this);
  }
  Row Quirk(std::function<void(sim::Quirks&)> value, std::vector<int> then) && {
    return quirk = std::move(value), quirk_codes = std::move(then), std::move(*this);
  }
};

// The parts of the table, and the whole of it.
void AddReservationRows(std::vector<Row>& rows);
void AddPhysicalMemoryRows(std::vector<Row>& rows);
void AddMappingRows(std::vector<Row>& rows);
void AddAccessRows(std::vector<Row>& rows);
void AddQueryRows(std::vector<Row>& rows);
void AddDeviceRows(std::vector<Row>& rows);
void AddContextRows(std::vector<Row>& rows);
void AddClassicMemoryRows(std::vector<Row>& rows);
void AddCopyRows(std::vector<Row>& rows);
void AddStreamRows(std::vector<Row>& rows);
void AddUnsupportedRows(std::vector<Row>& rows);
[[nodiscard]] const std::vector<Row>& AllRows();

}  // namespace expanse::driver_spec

#endif  // EXPANSE_TESTS_DRIVER_SPEC_ROW_H_

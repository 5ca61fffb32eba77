#include "vmm/sim/shared/process_driver.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/sim/shared/environment.h"

namespace expanse::sim {

const ProcessDriver& ProcessDriver::Get() {
  static const ProcessDriver* const driver = new ProcessDriver();
  return *driver;
}

ProcessDriver::ProcessDriver() {
  const char* text = std::getenv("EXPANSE_SIM");
  absl::StatusOr<Environment> environment = ParseEnvironment(text != nullptr ? text : "");
  absl::Status status = environment.status();
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<Simulator>> simulator = Simulator::Create(environment->config);
    status = simulator.status();
    if (status.ok()) {
      Use(*std::move(simulator));
      if (environment->report) (void)std::atexit(&ProcessDriver::Report);
      return;
    }
  }
  (void)std::fprintf(stderr, "EXPANSE_SIM: %s\n", std::string(status.message()).c_str());
  refused_ = true;
  // The error texts and the version are asked for before cuInit and after it failed, so there is a driver for those.
  Config spare;
  spare.memory = MemoryMode::kAccounting;
  if (absl::StatusOr<std::unique_ptr<Simulator>> simulator = Simulator::Create(spare); simulator.ok()) {
    Use(*std::move(simulator));
  }
}

void ProcessDriver::Use(std::unique_ptr<Simulator> simulator) {
  simulator_ = std::move(simulator);
  table_ = simulator_->driver();
  version_ = simulator_->config().driver_version;
}

std::optional<abi::Result> ProcessDriver::Refusal(EntryPoint entry_point) const {
  if (simulator_ == nullptr) return abi::kUnknown;
  if (!refused_) return std::nullopt;
  switch (entry_point) {
    case EntryPoint::driver_get_version:
    case EntryPoint::get_error_name:
    case EntryPoint::get_error_string:
      return std::nullopt;
    case EntryPoint::init:
      return abi::kUnknown;
    default:
      return abi::kNotInitialized;
  }
}

void ProcessDriver::Report() {
  const Simulator& simulator = *Get().simulator_;
  const Counters counters = simulator.counters();
  (void)std::fprintf(stderr, "EXPANSE_SIM: %llu driver calls, modelled at %.1f us\n",
                     static_cast<unsigned long long>(counters.TotalCalls()),
                     static_cast<double>(counters.TotalModelled().count()) / 1e3);
  for (int i = 0; i < kEntryPointCount; ++i) {
    const auto index = static_cast<size_t>(i);
    if (counters.calls[index] == 0) continue;
    const std::string symbol(SymbolName(static_cast<EntryPoint>(i)));
    (void)std::fprintf(stderr, "EXPANSE_SIM:   %-42s %8llu calls %12.1f us\n", symbol.c_str(),
                       static_cast<unsigned long long>(counters.calls[index]),
                       static_cast<double>(counters.modelled[index].count()) / 1e3);
  }
  const Ledger ledger = simulator.ledger();
  (void)std::fprintf(stderr, "EXPANSE_SIM: %s%s\n", ledger.Balanced() ? "all given back" : "still alive: ",
                     ledger.Balanced() ? "" : ledger.ToString().c_str());
  for (const Hazard& hazard : simulator.hazards()) {
    (void)std::fprintf(stderr, "EXPANSE_SIM: hazard: %s\n", hazard.description.c_str());
  }
}

}  // namespace expanse::sim

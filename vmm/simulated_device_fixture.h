// What the tests of this folder share: a simulated device, and a way to fail each driver call of a scenario in turn.

#ifndef EXPANSE_VMM_TEST_SIMULATED_DEVICE_H_
#define EXPANSE_VMM_TEST_SIMULATED_DEVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "vmm/device.h"
#include "vmm/driver.h"
#include "vmm/sim/config.h"
#include "vmm/sim/simulator.h"
#include "vmm/units.h"

namespace expanse {

// Small enough that a test can exhaust it.
inline constexpr Bytes kTestDeviceMemory = MiB(64);
inline constexpr Bytes kGranule = MiB(2);

inline sim::Config SmallConfig() {
  sim::Config config;
  config.devices[0].total_memory = kTestDeviceMemory;
  config.devices[0].granularity = kGranule;
  config.address_space = GiB(64);
  return config;
}

inline uint64_t Calls(const sim::Simulator& simulator, EntryPoint entry_point) {
  return simulator.counters().calls[static_cast<int>(entry_point)];
}

// A simulator with one small device that is open. At the end nothing may be left on the books, and no hazard.
class SimulatedDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(SmallConfig()); }

  void Start(const sim::Config& config) {
    device.reset();
    simulator.reset();
    absl::StatusOr<std::unique_ptr<sim::Simulator>> created = sim::Simulator::Create(config);
    ASSERT_TRUE(created.ok()) << created.status();
    simulator = std::move(*created);
    absl::StatusOr<std::unique_ptr<Device>> opened = Device::Open(simulator->driver(), DeviceOrdinal(0));
    ASSERT_TRUE(opened.ok()) << opened.status();
    device = std::move(*opened);
    simulator->ResetCounters();
  }

  void TearDown() override {
    device.reset();
    if (simulator == nullptr) return;
    EXPECT_TRUE(simulator->ledger().Balanced()) << simulator->ledger().ToString();
    for (const sim::Hazard& hazard : simulator->hazards()) ADD_FAILURE() << hazard.description;
    EXPECT_TRUE(simulator->CheckInvariants().ok()) << simulator->CheckInvariants();
  }

  [[nodiscard]] uint64_t Calls(EntryPoint entry_point) const { return expanse::Calls(*simulator, entry_point); }

  std::unique_ptr<sim::Simulator> simulator;
  std::unique_ptr<Device> device;
};

// Runs `scenario`, which opens the device itself and cleans up after itself, once without faults and then once for each
// driver call it makes, with that call failing. Each time it must report the failure of any call that is not made to
// clean up, and leave nothing behind.
inline void FailEachCallInTurn(const sim::Config& config,
                               const std::function<absl::Status(sim::Simulator&)>& scenario) {
  constexpr abi::Result kFault = abi::kUnknown;
  auto run = [&](EntryPoint entry_point, uint64_t nth) -> sim::Counters {
    absl::StatusOr<std::unique_ptr<sim::Simulator>> created = sim::Simulator::Create(config);
    if (!created.ok()) {
      ADD_FAILURE() << created.status();
      return {};
    }
    sim::Simulator& simulator = **created;
    if (nth > 0) simulator.FailNthCall(entry_point, nth, kFault);
    const absl::Status status = scenario(simulator);
    const std::string symbol(SymbolName(entry_point));
    SCOPED_TRACE("call " + std::to_string(nth) + " of " + symbol + " fails");

    const sim::Ledger left = simulator.ledger();
    bool may_be_ignored = nth == 0;
    switch (nth == 0 ? EntryPoint::init : entry_point) {
      case EntryPoint::thread_exchange_stream_capture_mode:
      case EntryPoint::ctx_pop_current:
      case EntryPoint::primary_ctx_release:
      case EntryPoint::event_destroy:
      case EntryPoint::mem_release:
      case EntryPoint::mem_unmap:
      case EntryPoint::mem_address_free:
        may_be_ignored = true;
        break;
      default:
        break;
    }
    if (status.ok()) {
      EXPECT_TRUE(may_be_ignored) << "the failure went unnoticed";
    } else {
      EXPECT_GT(nth, 0u) << status;
      EXPECT_NE(status.message().find(symbol), absl::string_view::npos) << status;
      EXPECT_NE(status.message().find("(999)"), absl::string_view::npos) << status;
    }
    EXPECT_TRUE(left.Balanced()) << left.ToString();
    EXPECT_EQ(simulator.hazard_count(), 0u);
    EXPECT_TRUE(simulator.CheckInvariants().ok()) << simulator.CheckInvariants();
    return simulator.counters();
  };

  const sim::Counters without_faults = run(EntryPoint::init, 0);
  EXPECT_GT(without_faults.TotalCalls(), 0u);
  for (int i = 0; i < kEntryPointCount; ++i) {
    const EntryPoint entry_point = static_cast<EntryPoint>(i);
    if (entry_point == EntryPoint::get_error_name) continue;  // made only to describe failures
    for (uint64_t nth = 1; nth <= without_faults.calls[i]; ++nth) run(entry_point, nth);
  }
}

}  // namespace expanse

#endif  // EXPANSE_VMM_TEST_SIMULATED_DEVICE_H_

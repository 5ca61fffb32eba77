// Runs the table against the simulated driver in both memory modes, with each row's quirk both ways, and against the
// real driver where EXPANSE_TEST_CUDA=1 is set and there is one.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/driver_spec/row.h"
#include "tests/driver_spec/world.h"
#include "vmm/sim/simulator.h"

namespace expanse::driver_spec {

const std::vector<Row>& AllRows() {
  static const std::vector<Row>* rows = [] {
    auto* all = new std::vector<Row>();
    AddReservationRows(*all);
    AddPhysicalMemoryRows(*all);
    AddMappingRows(*all);
    AddAccessRows(*all);
    AddQueryRows(*all);
    AddDeviceRows(*all);
    AddContextRows(*all);
    AddClassicMemoryRows(*all);
    AddCopyRows(*all);
    AddStreamRows(*all);
    AddUnsupportedRows(*all);
    return all;
  }();
  return *rows;
}

namespace {

enum class Target { kReal, kAccounting, kQuirk, kQuirkAccounting, kCuda };

std::string Join(const std::vector<std::string>& lines) {
  std::string joined;
  for (const std::string& line : lines) joined += "\n  " + line;
  return joined;
}

sim::Config ConfigFor(const Row& row, Target target) {
  sim::Config config;
  config.devices.assign(2, config.devices[0]);
  for (sim::DeviceConfig& device : config.devices) device.total_memory = MiB(64);
  config.address_space = GiB(64);
  if (target == Target::kAccounting || target == Target::kQuirkAccounting) config.memory = sim::MemoryMode::kAccounting;
  if (target == Target::kQuirk || target == Target::kQuirkAccounting) row.quirk(config.quirks);
  if (row.configure) row.configure(config);
  return config;
}

class DriverSpec : public ::testing::TestWithParam<std::tuple<size_t, Target>> {};

void RunOnSimulator(const Row& row, Target target) {
  const bool quirk = target == Target::kQuirk || target == Target::kQuirkAccounting;
  auto created = sim::Simulator::Create(ConfigFor(row, target));
  ASSERT_TRUE(created.ok()) << created.status();
  sim::Simulator& simulator = **created;
  {
    World world(simulator.driver(), &simulator, row.start);
    ASSERT_TRUE(world.problems().empty()) << Join(world.problems());
    world.quirk = quirk;
    EXPECT_EQ(row.call(world), quirk ? row.quirk_codes[0] : row.codes[0]);
    EXPECT_FALSE(world.not_applicable) << "the simulator can bring every situation about";
    world.Finish();
    EXPECT_TRUE(world.problems().empty()) << Join(world.problems());
  }
  EXPECT_TRUE(simulator.ledger().Balanced()) << simulator.ledger().ToString();
  for (const sim::Hazard& hazard : simulator.hazards()) {
    EXPECT_TRUE(row.breaks_contract && hazard.kind == sim::Hazard::Kind::kContractBreach) << hazard.description;
  }
  EXPECT_EQ(simulator.hazard_count() > 0, row.breaks_contract);
  EXPECT_TRUE(simulator.CheckInvariants().ok()) << simulator.CheckInvariants();
}

bool CudaWanted() {
  const char* wanted = std::getenv("EXPANSE_TEST_CUDA");
  return wanted != nullptr && std::string(wanted) == "1";
}

const absl::StatusOr<Driver>& CudaDriver() {
  static const auto* driver = new absl::StatusOr<Driver>(LoadCudaDriver());
  return *driver;
}

void RunOnCuda(const Row& row) {
  if (!CudaDriver().ok()) GTEST_SKIP() << CudaDriver().status();
  World world(*CudaDriver(), nullptr, row.start);
  ASSERT_TRUE(world.problems().empty()) << Join(world.problems());
  if (row.needs_two_devices && world.devices < 2) {
    world.Finish();
    GTEST_SKIP() << "needs two devices";
  }
  const int result = row.call(world);
  world.Finish();
  if (world.not_applicable) GTEST_SKIP() << "the driver does not bring the situation about";
  const std::vector<int>& accepted = row.codes;
  const bool as_expected = std::count(accepted.begin(), accepted.end(), result) > 0 && world.problems().empty();
  if (row.grade == Grade::kAssumed) {
    std::printf("[ REPORT   ] %s: %s, result %d, assumed %d%s\n", row.id.c_str(),
                as_expected ? "as assumed" : "OTHERWISE", result, accepted[0], Join(world.problems()).c_str());
    return;
  }
  EXPECT_GT(std::count(accepted.begin(), accepted.end(), result), 0) << "result " << result;
  EXPECT_TRUE(world.problems().empty()) << Join(world.problems());
}

TEST_P(DriverSpec, BehavesAsTheTableSays) {
  const auto [index, target] = GetParam();
  const Row& row = AllRows()[index];
  if (target == Target::kCuda) {
    RunOnCuda(row);
  } else {
    RunOnSimulator(row, target);
  }
}

std::vector<std::tuple<size_t, Target>> Cases() {
  std::vector<std::tuple<size_t, Target>> cases;
  for (size_t i = 0; i < AllRows().size(); ++i) {
    cases.emplace_back(i, Target::kReal);
    cases.emplace_back(i, Target::kAccounting);
    if (AllRows()[i].quirk == nullptr) continue;
    cases.emplace_back(i, Target::kQuirk);
    cases.emplace_back(i, Target::kQuirkAccounting);
  }
  if (!CudaWanted()) return cases;
  // What is only assumed comes last: should it turn out to break the context, every other row has been tried.
  for (const bool assumed : {false, true}) {
    for (size_t i = 0; i < AllRows().size(); ++i) {
      const Row& row = AllRows()[i];
      if (!row.simulator_only && (row.grade == Grade::kAssumed) == assumed) cases.emplace_back(i, Target::kCuda);
    }
  }
  return cases;
}

std::string CaseName(const ::testing::TestParamInfo<std::tuple<size_t, Target>>& info) {
  constexpr const char* kTargets[] = {"simulator", "accounting", "quirk", "quirk_accounting", "cuda"};
  std::string name = AllRows()[std::get<0>(info.param)].id + "_" + kTargets[static_cast<int>(std::get<1>(info.param))];
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, DriverSpec, ::testing::ValuesIn(Cases()), CaseName);

TEST(DriverSpecTable, HasRowsForEveryEntryPoint) {
  std::array<int, kEntryPointCount> rows{};
  std::set<std::string> ids;
  for (const Row& row : AllRows()) {
    ++rows[static_cast<int>(row.entry_point)];
    EXPECT_TRUE(ids.insert(row.id).second) << row.id << " is there twice";
    EXPECT_FALSE(row.codes.empty()) << row.id;
    EXPECT_EQ(row.quirk != nullptr, !row.quirk_codes.empty()) << row.id;
  }
  for (int i = 0; i < kEntryPointCount; ++i) {
    const std::string symbol(SymbolName(static_cast<EntryPoint>(i)));
    std::printf("%3d rows  %s\n", rows[i], symbol.c_str());
    EXPECT_GT(rows[i], 0) << symbol;
  }
  std::printf("%3zu rows  in all\n", AllRows().size());
}

TEST(DriverSpecTable, RunsOnARealDriver) {
  if (!CudaWanted()) GTEST_SKIP() << "set EXPANSE_TEST_CUDA=1 to run the table against a real driver";
  if (!CudaDriver().ok()) GTEST_SKIP() << CudaDriver().status();
}

}  // namespace
}  // namespace expanse::driver_spec

#include "vmm/sim/shared/environment.h"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::sim {
namespace {

using ::testing::HasSubstr;

TEST(Environment, NothingIsTheDefault) {
  const absl::StatusOr<Environment> environment = ParseEnvironment("");
  ASSERT_TRUE(environment.ok()) << environment.status();
  const Config standard;
  EXPECT_EQ(environment->config.devices.size(), 1U);
  EXPECT_EQ(environment->config.devices[0].total_memory, standard.devices[0].total_memory);
  EXPECT_EQ(environment->config.memory, MemoryMode::kReal);
  EXPECT_EQ(environment->config.costs.name, "default");
  EXPECT_FALSE(environment->report);
}

TEST(Environment, EveryDeviceIsAlike) {
  const absl::StatusOr<Environment> environment =
      ParseEnvironment("devices=3, memory=16GiB ,granularity=64KiB,costs=slow,accounting=1,report=1,");
  ASSERT_TRUE(environment.ok()) << environment.status();
  ASSERT_EQ(environment->config.devices.size(), 3U);
  for (const DeviceConfig& device : environment->config.devices) {
    EXPECT_EQ(device.total_memory, GiB(16));
    EXPECT_EQ(device.granularity, KiB(64));
  }
  EXPECT_EQ(environment->config.costs.name, "slow");
  EXPECT_EQ(environment->config.memory, MemoryMode::kAccounting);
  EXPECT_TRUE(environment->report);
}

TEST(Environment, SizesTakeBinaryAndDecimalUnits) {
  const auto memory = [](std::string_view size) {
    const auto environment = ParseEnvironment("memory=" + std::string(size));
    return environment.ok() ? environment->config.devices[0].total_memory : Bytes(0);
  };
  EXPECT_EQ(memory("4194304"), MiB(4));
  EXPECT_EQ(memory("4194304B"), MiB(4));
  EXPECT_EQ(memory("4096KiB"), MiB(4));
  EXPECT_EQ(memory("1TiB"), TiB(1));
  EXPECT_EQ(memory("2GB"), Bytes(2000000000));
  EXPECT_EQ(memory("18446744073709551615"), Bytes(UINT64_MAX));
}

TEST(Environment, EveryQuirkHasItsKey) {
  const absl::StatusOr<Environment> environment = ParseEnvironment(
      "offset_map_error=801,oversize_map_error=1,unmap_hole_is_partial=1,unmap_across_reservations=1,"
      "set_access_subrange=1,address_free_live=1,vmm_needs_context=1,peer_error=217,honour_address_hints=0,"
      "context_free_calls_see_sticky=0,release_lag=1,alloc_zero_succeeds=1");
  ASSERT_TRUE(environment.ok()) << environment.status();
  const Quirks& quirks = environment->config.quirks;
  EXPECT_EQ(quirks.offset_map_error, abi::kNotSupported);
  EXPECT_EQ(quirks.oversize_map_error, abi::kInvalidValue);
  EXPECT_TRUE(quirks.unmap_hole_is_partial);
  EXPECT_TRUE(quirks.unmap_across_reservations);
  EXPECT_TRUE(quirks.set_access_subrange);
  EXPECT_TRUE(quirks.address_free_live);
  EXPECT_TRUE(quirks.vmm_needs_context);
  EXPECT_EQ(quirks.peer_error, abi::kPeerAccessUnsupported);
  EXPECT_FALSE(quirks.honour_address_hints);
  EXPECT_FALSE(quirks.context_free_calls_see_sticky);
  EXPECT_TRUE(quirks.release_lag);
  EXPECT_TRUE(quirks.alloc_zero_succeeds);
}

TEST(Environment, LimitsAndModes) {
  const absl::StatusOr<Environment> environment = ParseEnvironment(
      "clock=0,poison=0,strict_host_fault=1,address_space=1TiB,max_handles=10,max_mappings=20,driver_version=12020");
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_FALSE(environment->config.calls_advance_clock);
  EXPECT_FALSE(environment->config.poison);
  EXPECT_TRUE(environment->config.strict_host_fault);
  EXPECT_EQ(environment->config.address_space, TiB(1));
  EXPECT_EQ(environment->config.max_handles, 10U);
  EXPECT_EQ(environment->config.max_mappings, 20U);
  EXPECT_EQ(environment->config.driver_version, 12020);
}

TEST(Environment, TheLastOfTwoCounts) {
  EXPECT_EQ(ParseEnvironment("max_handles=1,max_handles=2")->config.max_handles, 2U);
}

TEST(Environment, CostsMayComeFromAFile) {
  const std::string path = ::testing::TempDir() + "/expanse_environment_test_costs";
  std::ofstream(path) << "cuMemCreate 5 0 0\n";
  const absl::StatusOr<Environment> environment = ParseEnvironment("costs=" + path);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->config.costs.Microseconds(EntryPoint::mem_create, 1, MiB(2)), 5);
  std::ofstream(path) << "cuMemCreate x 0 0\n";
  EXPECT_THAT(std::string(ParseEnvironment("costs=" + path).status().message()), HasSubstr(":1: cuMemCreate: \"x\""));
  std::remove(path.c_str());
}

struct Bad {
  const char* text;
  const char* message;
};
class EnvironmentError : public ::testing::TestWithParam<Bad> {};

TEST_P(EnvironmentError, NamesKeyAndValue) {
  const absl::Status status = ParseEnvironment(GetParam().text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, EnvironmentError,
    ::testing::Values(Bad{"device=2", "unknown key \"device\"; there are devices, memory"},
                      Bad{"devices", "devices=\"\" should be a whole number from 1 to 64"},
                      Bad{"devices=0", "devices=\"0\""}, Bad{"devices=65", "devices=\"65\""},
                      Bad{"devices=-1", "devices=\"-1\""}, Bad{"memory=16GiBs", "memory=\"16GiBs\" should be a size"},
                      Bad{"memory=-1GiB", "memory=\"-1GiB\""}, Bad{"memory=1e3", "memory=\"1e3\""},
                      Bad{"memory=99999999TiB", "memory=\"99999999TiB\""}, Bad{"memory=GiB", "memory=\"GiB\""},
                      Bad{"costs=quick", "costs=\"quick\" should be a readable cost file or one of default"},
                      Bad{"accounting=yes", "accounting=\"yes\" should be 0 or 1"},
                      Bad{"offset_map_error=2", "offset_map_error=\"2\" should be 1 or 801"},
                      Bad{"devices=1=2", "devices=\"1=2\""}, Bad{"driver_version=9", "driver_version=\"9\""}));

}  // namespace
}  // namespace expanse::sim

#include "vmm/sim/cost_model.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::sim {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kTolerance = 1e-9;

// What 2 GiB in chunks of `chunk` cost with one cuMemSetAccess a chunk, relative to one cuMemAlloc of 2 GiB that takes
// 0.4 ms: the layout of GMLake's table 1.
double GmlakeTotal(const CostModel& model, Bytes chunk) {
  const uint64_t chunks = GiB(2) / chunk;
  const double each = model.Microseconds(EntryPoint::mem_create, 1, chunk) +
                      model.Microseconds(EntryPoint::mem_map, 1, chunk) +
                      model.Microseconds(EntryPoint::mem_set_access, 1, chunk);
  return static_cast<double>(chunks) * each / 400;
}

TEST(CostModel, SumsCallHandlesAndBytes) {
  CostModel model;
  model.costs[static_cast<size_t>(EntryPoint::mem_set_access)] = {20, 18, 0.5};
  EXPECT_THAT(model.Microseconds(EntryPoint::mem_set_access, 3, MiB(6)), DoubleNear(20 + 54 + 3, kTolerance));
  EXPECT_THAT(model.Microseconds(EntryPoint::mem_set_access, 0, KiB(512)), DoubleNear(20.25, kTolerance));
  EXPECT_THAT(model.Microseconds(EntryPoint::mem_map, 3, MiB(6)), DoubleNear(0, kTolerance));
}

TEST(CostModel, DefaultIsNearWhatWasPublished) {
  const CostModel model = CostModel::Default();
  EXPECT_EQ(model.name, "default");
  // kvcached 36 us and vAttention 38 us for one chunk of 2 MB.
  EXPECT_THAT(model.Microseconds(EntryPoint::mem_set_access, 1, MiB(2)), DoubleNear(37, 2));
  // GMLake: 115.4 at 2 MB, 1.5 at 1 GB.
  EXPECT_THAT(GmlakeTotal(model, MiB(2)), DoubleNear(115.4, 12));
  EXPECT_THAT(GmlakeTotal(model, GiB(1)), DoubleNear(1.5, 0.5));
}

TEST(CostModel, EveryPresetIsFoundByItsName) {
  EXPECT_THAT(CostModel::PresetNames(), ElementsAre("default", "slow", "busy", "vattention", "placement", "free"));
  for (const std::string& name : CostModel::PresetNames()) {
    const absl::StatusOr<CostModel> model = CostModel::Preset(name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->name, name);
  }
}

TEST(CostModel, UnknownPresetsNameTheOnesThereAre) {
  const absl::Status status = CostModel::Preset("fast").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"fast\""));
  for (const std::string& name : CostModel::PresetNames()) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST(CostModel, PresetsGiveTheirSourcesFigures) {
  const CostModel busy = *CostModel::Preset("busy");
  EXPECT_THAT(busy.Microseconds(EntryPoint::mem_create, 1, MiB(2)), DoubleNear(195, kTolerance));
  EXPECT_THAT(busy.Microseconds(EntryPoint::mem_map, 1, MiB(2)), DoubleNear(1.5, kTolerance));

  const CostModel vattention = *CostModel::Preset("vattention");
  double used = vattention.Microseconds(EntryPoint::mem_create, 1, MiB(2)) +
                vattention.Microseconds(EntryPoint::mem_map, 1, MiB(2)) +
                vattention.Microseconds(EntryPoint::mem_set_access, 1, MiB(2));
  EXPECT_THAT(used, DoubleNear(29 + 2 + 38, kTolerance));
  EXPECT_THAT(vattention.Microseconds(EntryPoint::mem_unmap, 1, MiB(2)) +
                  vattention.Microseconds(EntryPoint::mem_release, 1, MiB(2)),
              DoubleNear(34 + 23, kTolerance));

  const CostModel slow = *CostModel::Preset("slow");
  EXPECT_THAT(slow.Microseconds(EntryPoint::mem_set_access, 1, MiB(100)), DoubleNear(91 + 3.6, kTolerance));
  EXPECT_THAT(slow.Microseconds(EntryPoint::mem_release, 1, MiB(100)), DoubleNear(26 + 37, kTolerance));
}

TEST(CostModel, FreeCostsNothing) {
  const CostModel model = CostModel::Free();
  for (int i = 0; i < kEntryPointCount; ++i) {
    EXPECT_EQ(model.Microseconds(static_cast<EntryPoint>(i), 1000, GiB(1)), 0);
  }
}

TEST(CostModelFile, NamedEntryPointsReplaceTheDefault) {
  const absl::StatusOr<CostModel> model = CostModel::Parse(
      "# measured on a Tuesday\n"
      "\n"
      "cuMemCreate 12.5 0 0.25   # per chunk\r\n"
      "\tcuMemUnmap\t1e1 2 0\n"
      "cuMemGetInfo_v2 3 0 0",
      "costs.txt");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name, "costs.txt");
  EXPECT_THAT(model->Microseconds(EntryPoint::mem_create, 1, MiB(2)), DoubleNear(13, kTolerance));
  EXPECT_THAT(model->Microseconds(EntryPoint::mem_unmap, 4, MiB(2)), DoubleNear(18, kTolerance));
  EXPECT_THAT(model->Microseconds(EntryPoint::mem_get_info, 0, Bytes(0)), DoubleNear(3, kTolerance));
  const CostModel standard = CostModel::Default();
  EXPECT_EQ(model->Microseconds(EntryPoint::mem_release, 1, MiB(2)),
            standard.Microseconds(EntryPoint::mem_release, 1, MiB(2)));
}

TEST(CostModelFile, WithoutAnyCostIsRefused) {
  for (const std::string_view text : {"", "\n", "# cuMemMap 1 0 0\n \t\r\n"}) {
    const absl::Status status = CostModel::Parse(text, "empty.costs").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("empty.costs: no cost is given; expected"));
  }
}

struct BadFile {
  std::string_view text;
  std::string_view message;
};

class CostModelBadFile : public ::testing::TestWithParam<BadFile> {};

TEST_P(CostModelBadFile, IsRefusedByFileLineAndValue) {
  const absl::Status status = CostModel::Parse("cuMemMap 1 0 0\n" + std::string(GetParam().text), "costs.txt").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("costs.txt:2: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, CostModelBadFile,
    ::testing::Values(
        BadFile{"cuMemCreat 1 0 0", "\"cuMemCreat\" is no driver entry point"},
        BadFile{std::string_view("cu\0Mem 1 0 0", 12), "\"cu\\x00Mem\" is no driver entry point"},
        BadFile{"cuMemCreate 1 0", "cuMemCreate: expected `symbol per_call per_handle per_mib`, got 3"},
        BadFile{"cuMemCreate", "got 1 fields"}, BadFile{"cuMemCreate 1 0 0 0", "got 5 fields"},
        BadFile{"cuMemCreate -1 0 0", "\"-1\" is no number"}, BadFile{"cuMemCreate 1 nan 0", "\"nan\" is no number"},
        BadFile{"cuMemCreate 1 0 inf", "\"inf\" is no number"}, BadFile{"cuMemCreate 1e7 0 0", "\"1e7\" is no number"},
        BadFile{"cuMemCreate 1e999 0 0", "\"1e999\" is no number"},
        BadFile{"cuMemCreate 1us 0 0", "\"1us\" is no number"}, BadFile{"cuMemCreate 1,5 0 0", "\"1,5\" is no number"},
        BadFile{"cuMemMap 2 0 0", "cuMemMap is given twice"}));

TEST(CostModelFile, HugeCoefficientsStayWithinVirtualTime) {
  const absl::StatusOr<CostModel> model = CostModel::Parse("cuMemSetAccess 1e6 1e6 1e6", "costs.txt");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_LT(model->Microseconds(EntryPoint::mem_set_access, 1 << 20, TiB(128)) * 1e3, 9e18);
}

}  // namespace
}  // namespace expanse::sim

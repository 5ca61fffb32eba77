// Every driver call of a scenario fails in turn.

#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/faults/scenario.h"

namespace expanse::faults {
namespace {

// The answers to open questions about the driver that bear on failing and undoing.
struct NamedQuirks {
  const char* name;
  sim::Quirks quirks;
  Steps steps;

  friend void PrintTo(const NamedQuirks& named, std::ostream* os) { *os << named.name; }
};

std::vector<NamedQuirks> AllQuirks() {
  std::vector<NamedQuirks> all;
  all.push_back({"default", {}, Steps::kGrowth});
  all.push_back({"partial_unmap", {}, Steps::kGrowth});
  all.back().quirks.unmap_hole_is_partial = true;
  all.push_back({"sticky_with_context_only", {}, Steps::kGrowth});
  all.back().quirks.context_free_calls_see_sticky = false;
  all.push_back({"release_lag", {}, Steps::kGrowth});
  all.back().quirks.release_lag = true;
  all.push_back({"lenient", {}, Steps::kGrowth});
  all.back().quirks.unmap_across_reservations = true;
  all.back().quirks.set_access_subrange = true;
  all.back().quirks.address_free_live = true;
  all.push_back({"strict", {}, Steps::kGrowth});
  all.back().quirks.honour_address_hints = false;
  all.back().quirks.vmm_needs_context = true;
  all.back().quirks.offset_map_error = abi::kNotSupported;
  all.back().quirks.oversize_map_error = abi::kInvalidValue;
  all.push_back({"tenants", {}, Steps::kTenants});
  all.push_back({"give_back", {}, Steps::kGiveBack});
  all.push_back({"ladder", {}, Steps::kLadder});
  all.back().quirks.release_lag = true;
  return all;
}

class Faults : public ::testing::TestWithParam<std::tuple<NamedQuirks, Growth>> {
 protected:
  [[nodiscard]] Settings settings() const {
    Settings settings;
    settings.quirks = std::get<0>(GetParam()).quirks;
    settings.growth = std::get<1>(GetParam());
    settings.steps = std::get<0>(GetParam()).steps;
    return settings;
  }
  // The calls of a run without faults, which covers what the scenario is there for.
  std::vector<DriverCall> CleanRun(const Settings& settings) {
    Scenario scenario(settings, Fault());
    scenario.Run();
    EXPECT_GT(scenario.stats().chunks_moved, 10u);
    EXPECT_GT(scenario.stats().waits, 2u);
    EXPECT_EQ(scenario.stats().failed_allocations, settings.steps == Steps::kGrowth ? 2u : 1u);
    EXPECT_EQ(scenario.stats().chunks_quarantined, 0u);
    return scenario.calls();
  }
  // Runs the scenario with each of its calls that `chosen` accepts failing in turn.
  template <typename Chosen>
  void FailInTurn(const Settings& settings, Fault fault, Chosen chosen) {
    const std::vector<DriverCall> calls = CleanRun(settings);
    for (fault.at = 1; fault.at <= calls.size() && !HasFailure(); ++fault.at) {
      const EntryPoint entry_point = calls[fault.at - 1].entry_point;
      if (!chosen(entry_point)) continue;
      SCOPED_TRACE(absl::StrCat("call ", fault.at, ", ", std::string(SymbolName(entry_point)), ", fails with ",
                                static_cast<int>(fault.result)));
      Scenario scenario(settings, fault);
      scenario.Run();
      EXPECT_TRUE(scenario.fault_hit());
    }
  }
};

bool Any(EntryPoint) { return true; }

TEST_P(Faults, TheScenarioMakesEveryKindOfCall) {
  std::set<EntryPoint> made;
  for (const DriverCall& call : CleanRun(settings())) made.insert(call.entry_point);
  using E = EntryPoint;
  for (EntryPoint needed :
       {E::primary_ctx_retain, E::primary_ctx_release, E::mem_address_reserve, E::mem_address_free, E::mem_create,
        E::mem_release, E::mem_map, E::mem_unmap, E::mem_set_access, E::mem_get_info, E::event_create, E::event_record,
        E::event_query, E::event_synchronize, E::event_destroy, E::ctx_synchronize, E::ctx_push_current}) {
    EXPECT_EQ(made.count(needed), 1u) << SymbolName(needed);
  }
}

TEST(FaultsOfTheLadder, TheScenarioClimbsEveryRung) {
  for (const Growth growth : {Growth::kBalanced, Growth::kLazy, Growth::kFrugal}) {
    Settings settings;
    settings.quirks.release_lag = true;
    settings.steps = Steps::kLadder;
    settings.growth = growth;
    Scenario scenario(settings, Fault());
    scenario.Run();
    const RungCounts& rungs = scenario.stats().rungs;
    for (const uint64_t count : {rungs.collected, rungs.moved, rungs.created, rungs.other_class, rungs.others_asked,
                                 rungs.callbacks_asked, rungs.waited, rungs.synchronized, rungs.failed}) {
      EXPECT_GT(count, 0u);
    }
  }
}

TEST(FaultsOfGivingBack, TheScenarioCreatesAheadAndGivesBack) {
  Settings settings;
  settings.steps = Steps::kGiveBack;
  Scenario scenario(settings, Fault());
  scenario.Run();
  EXPECT_GT(scenario.stats().chunks_prewarmed, 60u);
  EXPECT_GT(scenario.stats().chunks_released, 100u);
}

TEST_P(Faults, OutOfMemory) { FailInTurn(settings(), {0, abi::kOutOfMemory}, Any); }

// An attribute that is an invalid value to the driver is one that it does not know.
TEST_P(Faults, InvalidValue) { FailInTurn(settings(), {0, abi::kInvalidValue}, Any); }

TEST_P(Faults, Unknown) { FailInTurn(settings(), {0, abi::kUnknown}, Any); }

TEST_P(Faults, Sticky) {
  Fault fault{0, abi::kIllegalAddress};
  fault.sticky = true;
  FailInTurn(settings(), fault, Any);
}

// Nothing is tried for ever.
TEST_P(Faults, AllCallsOfOneKindFromThereOn) {
  for (abi::Result result : {abi::kOutOfMemory, abi::kUnknown}) {
    Fault fault{0, result};
    fault.persistent = true;
    FailInTurn(settings(), fault, Any);
  }
}

// Undoing a failed growth fails as well: one chunk and its addresses are lost, nothing else is, and everything goes on.
TEST_P(Faults, UndoingFailsToo) {
  Fault fault{0, abi::kUnknown};
  fault.undo_too = true;
  int lost = 0;
  const Settings with = settings();
  const std::vector<DriverCall> calls = CleanRun(with);
  for (fault.at = 1; fault.at <= calls.size() && !HasFailure(); ++fault.at) {
    const EntryPoint failed = calls[fault.at - 1].entry_point;
    if (failed != EntryPoint::mem_map && failed != EntryPoint::mem_set_access && failed != EntryPoint::mem_create) {
      continue;
    }
    SCOPED_TRACE(absl::StrCat("call ", fault.at, ", ", std::string(SymbolName(failed))));
    Scenario scenario(with, fault);
    scenario.Run();
    lost += scenario.undo_hit() ? 1 : 0;
    const uint64_t quarantined = scenario.stats().chunks_quarantined;
    EXPECT_LE(quarantined, scenario.undo_hit() ? 1u : 0u);
    EXPECT_TRUE(quarantined == 1 || !scenario.undo_hit() || with.steps == Steps::kLadder);
  }
  EXPECT_GT(lost, 20);
}

class FaultsOnMemory : public Faults {};

TEST_P(FaultsOnMemory, ContentsSurvive) {
  Settings real = settings();
  real.memory = sim::MemoryMode::kReal;
  FailInTurn(real, {0, abi::kUnknown}, [](EntryPoint failed) {
    return failed == EntryPoint::mem_map || failed == EntryPoint::mem_set_access || failed == EntryPoint::mem_unmap ||
           failed == EntryPoint::mem_create || failed == EntryPoint::event_synchronize;
  });
}

std::string NameOfCase(const ::testing::TestParamInfo<Faults::ParamType>& info) {
  return absl::StrCat(std::get<0>(info.param).name, "_", NameOf(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(All, Faults,
                         ::testing::Combine(::testing::ValuesIn(AllQuirks()),
                                            ::testing::Values(Growth::kBalanced, Growth::kLazy, Growth::kFrugal)),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(All, FaultsOnMemory,
                         ::testing::Combine(::testing::Values(AllQuirks().front()),
                                            ::testing::Values(Growth::kBalanced, Growth::kLazy, Growth::kFrugal)),
                         NameOfCase);

}  // namespace
}  // namespace expanse::faults

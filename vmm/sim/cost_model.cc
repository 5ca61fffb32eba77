#include "vmm/sim/cost_model.h"

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace expanse::sim {
namespace {

// No call, handle or MiB costs more than a second. It keeps every sum within what virtual time can hold.
constexpr double kLargestCoefficient = 1e6;

struct Row {
  EntryPoint entry_point;
  CallCost cost;
};

// Costs of calls that no source gives a figure for, the same in all presets but "free". ASSUMPTION throughout: a call
// that only writes a command for the device is taken to cost a few microseconds, one that reads a flag less than one.
// Initialisation, contexts and queries of properties are taken to be free: they are outside what an allocator decides.
constexpr Row kAssumed[] = {
    {EntryPoint::mem_get_access, {1, 0, 0}},    {EntryPoint::mem_retain_allocation_handle, {1, 0, 0}},
    {EntryPoint::mem_export, {20, 0, 0}},       {EntryPoint::mem_import, {20, 0, 0}},
    {EntryPoint::mem_alloc_async, {2, 0, 0}},   {EntryPoint::mem_free_async, {2, 0, 0}},
    {EntryPoint::memcpy_async, {4, 0, 0}},      {EntryPoint::memcpy_htod_async, {4, 0, 0}},
    {EntryPoint::memcpy_dtoh_async, {4, 0, 0}}, {EntryPoint::memcpy_dtod_async, {4, 0, 0}},
    {EntryPoint::memset_d8_async, {4, 0, 0}},   {EntryPoint::stream_create, {20, 0, 0}},
    {EntryPoint::stream_destroy, {10, 0, 0}},   {EntryPoint::stream_synchronize, {2, 0, 0}},
    {EntryPoint::stream_query, {0.5, 0, 0}},    {EntryPoint::stream_wait_event, {1, 0, 0}},
    {EntryPoint::event_create, {1, 0, 0}},      {EntryPoint::event_destroy, {1, 0, 0}},
    {EntryPoint::event_record, {2, 0, 0}},      {EntryPoint::event_query, {0.5, 0, 0}},
    {EntryPoint::event_synchronize, {2, 0, 0}}, {EntryPoint::ctx_synchronize, {2, 0, 0}},
};

// "default": an A100-class device on a quiet machine. Where sources give a cuMemSetAccess of one chunk alone, half of
// it is taken to be the call's and half the chunk's: nothing was found that tells them apart.
constexpr Row kDefault[] = {
    // vAttention (ASPLOS 2025) table 3, 2 MB column: 2 us to reserve, 1 us to free. kvcached's benchmark README has
    // 19 us for 8 GB on an A100, and a study of an RTX 4050 found no growth with size.
    {EntryPoint::mem_address_reserve, {2, 0, 0}},
    {EntryPoint::mem_address_free, {1, 0, 0}},
    // GMLake (ASPLOS 2024) table 1, scaled by a cuMemAlloc of 2 GB of 0.4 ms: 7 us at 2 MB, 160 us at 1 GB. kvcached's
    // second machine agrees (7.6 us at 2 MB).
    {EntryPoint::mem_create, {7, 0, 0.14}},
    // kvcached, A100: 1.45 us; vAttention: 2 us.
    {EntryPoint::mem_map, {1.5, 0, 0}},
    // vAttention and kvcached: 38 and 36 us for one chunk of 2 MB; the growth with size is the RTX 4050 study's.
    {EntryPoint::mem_set_access, {20, 18, 0.04}},
    // kvcached: 25.6 us; vAttention: 34 us; a call that covers many mappings pays for each.
    {EntryPoint::mem_unmap, {0, 30, 0}},
    // vAttention: 23 us at 2 MB; the RTX 4050 study: 0.37 us for each MiB.
    {EntryPoint::mem_release, {23, 0, 0.37}},
    // The RTX 4050 study: cudaMalloc 223 us at 2 MiB to 631 us at 4 GiB, cudaFree 75 us to 1,600 us, without what
    // cudaFree waits for.
    {EntryPoint::mem_alloc, {220, 0, 0.1}},
    {EntryPoint::mem_free, {75, 0, 0.37}},
    // kvcached: about 6 us; sgl-project/sglang #25225: 7 to 12 us.
    {EntryPoint::mem_get_info, {7, 0, 0}},
};

// "slow": a laptop, or memory that the driver scrubs when it is created. All from the study of an RTX 4050 Laptop with
// driver 580.178 (latency = fixed + size * slope for each call, one chunk a call), the second column of the model that
// was drawn from it.
constexpr Row kSlow[] = {
    {EntryPoint::mem_address_reserve, {20, 0, 0}},     {EntryPoint::mem_address_free, {20, 0, 0}},
    {EntryPoint::mem_create, {71, 0, 0.001}},          {EntryPoint::mem_map, {3.4, 0, 0}},
    {EntryPoint::mem_set_access, {45.5, 45.5, 0.036}}, {EntryPoint::mem_unmap, {0, 37, 0.006}},
    {EntryPoint::mem_release, {26, 0, 0.37}},
};

// "busy": the default, with the cuMemCreate of kvcached's A100-80GB: 195 us (median) at 2 MB where other machines need
// 7. Why it has two modes is not known.
constexpr Row kBusy[] = {
    {EntryPoint::mem_create, {194.72, 0, 0.14}},
};

// "vattention": table 3 of vAttention (ASPLOS 2025), 2 MB column. Measured at 2 MB alone, so nothing grows with size
// and larger chunks come out too cheap: use it for comparisons at 2 MiB.
constexpr Row kVattention[] = {
    {EntryPoint::mem_address_reserve, {2, 0, 0}}, {EntryPoint::mem_address_free, {1, 0, 0}},
    {EntryPoint::mem_create, {29, 0, 0}},         {EntryPoint::mem_map, {2, 0, 0}},
    {EntryPoint::mem_set_access, {19, 19, 0}},    {EntryPoint::mem_unmap, {0, 34, 0}},
    {EntryPoint::mem_release, {23, 0, 0}},
};

// "placement": the model under which this project first compared placement policies, before there was a simulator.
constexpr Row kPlacement[] = {
    {EntryPoint::mem_create, {30, 0, 0.14}},
    {EntryPoint::mem_map, {2, 0, 0}},
    {EntryPoint::mem_set_access, {20, 18, 0}},
    {EntryPoint::mem_release, {23, 0, 0}},
};

// GMLake's table 1 has no preset. The default is fitted to its first and last columns; its middle one has a
// cuMemSetAccess at 128 MB dearer than the one at 1 GB, which no model that is linear in size can follow.

// Debian builds Abseil with a string_view of its own.
absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

void Apply(absl::Span<const Row> rows, CostModel& model) {
  for (const Row& row : rows) model.costs[static_cast<size_t>(row.entry_point)] = row.cost;
}

struct NamedPreset {
  const char* name;
  absl::Span<const Row> rows;  // what differs from "default"
};

const std::vector<NamedPreset>& Presets() {
  static const auto* presets = new std::vector<NamedPreset>{
      {"default", {}}, {"slow", kSlow}, {"busy", kBusy}, {"vattention", kVattention}, {"placement", kPlacement}};
  return *presets;
}

std::optional<size_t> FindSymbol(absl::string_view symbol) {
  for (int i = 0; i < kEntryPointCount; ++i) {
    if (View(SymbolName(static_cast<EntryPoint>(i))) == symbol) return static_cast<size_t>(i);
  }
  return std::nullopt;
}

// What is wrong with the line, or the cost it gives to `symbol`.
absl::StatusOr<CallCost> ParseCost(const std::vector<absl::string_view>& fields) {
  if (fields.size() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected `symbol per_call per_handle per_mib`, got ", fields.size(), " fields"));
  }
  CallCost cost;
  double* const coefficients[] = {&cost.per_call, &cost.per_handle, &cost.per_mib};
  for (size_t i = 0; i < 3; ++i) {
    const absl::string_view text = fields[i + 1];
    // The comparison is false for NaN too.
    if (!absl::SimpleAtod(text, coefficients[i]) ||
        !(*coefficients[i] >= 0 && *coefficients[i] <= kLargestCoefficient)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text, "\" is no number of microseconds from 0 to ", kLargestCoefficient));
    }
  }
  return cost;
}

}  // namespace

double CostModel::Microseconds(EntryPoint entry_point, uint64_t handles, Bytes bytes) const {
  const CallCost& cost = costs[static_cast<size_t>(entry_point)];
  const double mib = static_cast<double>(bytes.count()) / static_cast<double>(MiB(1).count());
  return cost.per_call + cost.per_handle * static_cast<double>(handles) + cost.per_mib * mib;
}

CostModel CostModel::Default() {
  CostModel model;
  model.name = "default";
  Apply(kAssumed, model);
  Apply(kDefault, model);
  return model;
}

CostModel CostModel::Free() {
  CostModel model;
  model.name = "free";
  return model;
}

absl::StatusOr<CostModel> CostModel::Preset(std::string_view name) {
  if (name == "free") return Free();
  for (const NamedPreset& preset : Presets()) {
    if (preset.name != name) continue;
    CostModel model = Default();
    model.name = preset.name;
    Apply(preset.rows, model);
    return model;
  }
  return absl::NotFoundError(
      absl::StrCat("no cost preset \"", View(name), "\"; there are ", absl::StrJoin(PresetNames(), ", ")));
}

std::vector<std::string> CostModel::PresetNames() {
  std::vector<std::string> names;
  for (const NamedPreset& preset : Presets()) names.emplace_back(preset.name);
  names.emplace_back("free");
  return names;
}

absl::StatusOr<CostModel> CostModel::Parse(std::string_view text, std::string_view file_name) {
  CostModel model = Default();
  model.name = std::string(file_name);
  std::bitset<kEntryPointCount> given;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(View(text), '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (fields.empty()) continue;
    const auto error = [&](absl::string_view message) {
      return absl::InvalidArgumentError(absl::StrCat(View(file_name), ":", number, ": ", message));
    };
    const std::optional<size_t> entry_point = FindSymbol(fields[0]);
    if (!entry_point)
      return error(absl::StrCat("\"", absl::CHexEscape(fields[0]), "\" is no driver entry point known here"));
    if (given.test(*entry_point)) return error(absl::StrCat(fields[0], " is given twice"));
    given.set(*entry_point);
    const absl::StatusOr<CallCost> cost = ParseCost(fields);
    if (!cost.ok()) return error(absl::StrCat(fields[0], ": ", cost.status().message()));
    model.costs[*entry_point] = *cost;
  }
  if (given.none()) {
    return absl::InvalidArgumentError(absl::StrCat(
        View(file_name),
        ": no cost is given; expected lines of `symbol per_call per_handle per_mib`, as `cuMemMap 1.5 0 0`"));
  }
  return model;
}

}  // namespace expanse::sim

#include "vmm/sim/contexts.h"

#include "absl/strings/str_cat.h"

namespace expanse::sim {
namespace {

// Contexts are opaque to programs: any values that differ from each other and from null will do.
constexpr uintptr_t kFirstContext = 0x5ac0000;
constexpr uintptr_t kContextStep = 0x1000;

}  // namespace

abi::Context Contexts::ContextOf(DeviceOrdinal device) const {
  return reinterpret_cast<abi::Context>(kFirstContext + static_cast<uintptr_t>(device.value()) * kContextStep);
}

std::optional<DeviceOrdinal> Contexts::DeviceOf(abi::Context context) const {
  const auto value = reinterpret_cast<uintptr_t>(context);
  if (value < kFirstContext || (value - kFirstContext) % kContextStep != 0) return std::nullopt;
  const uintptr_t index = (value - kFirstContext) / kContextStep;
  if (index >= primary_.size()) return std::nullopt;
  return DeviceOrdinal(static_cast<int>(index));
}

abi::Context Contexts::Retain(DeviceOrdinal device) {
  ++At(device).references;
  ++references_;
  return ContextOf(device);
}

bool Contexts::Release(DeviceOrdinal device) {
  Primary& primary = At(device);
  if (primary.references == 0) return false;
  --primary.references;
  --references_;
  if (primary.references == 0) primary.sticky = abi::kSuccess;
  return true;
}

abi::Result Contexts::AnySticky() const {
  for (const Primary& primary : primary_) {
    if (primary.sticky != abi::kSuccess) return primary.sticky;
  }
  return abi::kSuccess;
}

void Contexts::MakeSticky(DeviceOrdinal device, abi::Result result) {
  if (At(device).sticky == abi::kSuccess) At(device).sticky = result;
}

void Contexts::ResetSticky() {
  for (Primary& primary : primary_) primary.sticky = abi::kSuccess;
}

absl::Status Contexts::CheckInvariants() const {
  uint64_t references = 0;
  for (const Primary& primary : primary_) references += primary.references;
  if (references == references_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("contexts: ", references, " references counted as ", references_));
}

ThreadState& ThreadState::Of(uint64_t simulator) {
  thread_local uint64_t owner = 0;
  thread_local ThreadState state;
  if (owner != simulator) {
    owner = simulator;
    state = ThreadState();
  }
  return state;
}

}  // namespace expanse::sim

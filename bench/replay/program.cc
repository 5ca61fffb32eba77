#include "bench/replay/program.h"

#include <chrono>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"

namespace expanse::bench {

absl::Status Program::MoveTo(uint32_t block, StreamHandle stream) {
  if (last_[block] == stream) return absl::OkStatus();
  if (absl::Status status = device_.Order(last_[block], stream); !status.ok()) return status;
  last_[block] = stream;
  return absl::OkStatus();
}

absl::Status Program::Allocated(uint32_t block, AddressRange range, StreamHandle stream) {
  last_[block] = stream;
  if (lag_ == 0) return absl::OkStatus();
  return device_.Launch(stream, range, sim::VirtualTime(0));
}

absl::Status Program::Used(uint32_t block, AddressRange range, StreamHandle stream) {
  auto& users = users_[block];
  if (!absl::c_linear_search(users, stream)) users.push_back(stream);
  if (absl::Status status = MoveTo(block, stream); !status.ok()) return status;
  if (lag_ == 0) return absl::OkStatus();
  return device_.Launch(stream, range, sim::VirtualTime(0));
}

absl::Status Program::Worked(uint32_t block, AddressRange range, StreamHandle stream, uint64_t microseconds) {
  if (absl::Status status = MoveTo(block, stream); !status.ok()) return status;
  return device_.Launch(stream, range, std::chrono::microseconds(microseconds));
}

absl::Status Program::BeforeFree(uint32_t block, AddressRange range, StreamHandle stream) {
  const auto users = users_.extract(block);
  if (lag_ == 0) return absl::OkStatus();
  if (absl::Status status = MoveTo(block, stream); !status.ok()) return status;
  if (absl::Status status = device_.LaunchForTicks(stream, range, lag_); !status.ok()) return status;
  if (users.empty()) return absl::OkStatus();
  for (const StreamHandle user : users.mapped()) {
    if (user == stream) continue;
    if (absl::Status status = MoveTo(block, user); !status.ok()) return status;
    if (absl::Status status = device_.LaunchForTicks(user, range, lag_); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::optional<Program> ProgramFor(const Trace& trace, const ReplayOptions& options, ReplayDevice& device) {
  auto* simulated = dynamic_cast<SimulatedReplayDevice*>(&device);
  if (simulated == nullptr) return std::nullopt;
  const bool works = absl::c_any_of(trace.events, [](const TraceEvent& event) { return event.op == TraceOp::kWork; });
  if (!works && options.lag == 0) return std::nullopt;
  return std::make_optional<Program>(*simulated, trace.block_count(), options.lag);
}

}  // namespace expanse::bench

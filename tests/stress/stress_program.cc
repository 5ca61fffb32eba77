#include "tests/stress/stress_program.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/stress/block_contents.h"
#include "vmm/sim/simulator.h"

namespace expanse::stress {
namespace {

using std::chrono::microseconds;

// Time passes a little faster than the queued work takes, so that at any moment some of it is pending, but the queues
// do not grow without end.
constexpr uint64_t kMostMicrosecondsBetweenEvents = 40;
constexpr uint64_t kMostMicrosecondsOfWork = 20;
constexpr uint64_t kMicrosecondsOfLongWork = 2000;
constexpr double kLongWork = 0.005;
constexpr double kUsedElsewhere = 0.2;

}  // namespace

StressProgram::StressProgram(StressDevice& device, Allocator& allocator, const bench::Trace& trace,
                             std::vector<StreamHandle> streams, const ProgramOptions& options)
    : device_(device),
      allocator_(allocator),
      trace_(trace),
      streams_(std::move(streams)),
      options_(options),
      rng_(options.seed) {}

absl::Status StressProgram::Run() {
  if (absl::Status status = device_.MakeCurrent(); !status.ok()) return status;
  for (uint64_t run = 0; run < options_.runs; ++run) {
    if (absl::Status status = RunOnce(run); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status StressProgram::RunOnce(uint64_t run) {
  blocks_.assign(trace_.block_count(), Block());
  for (uint64_t i = 0; i < trace_.events.size(); ++i) {
    absl::Status status = Apply(run, trace_.events[i]);
    if (status.ok() && options_.check_every > 0 && i % options_.check_every == 0) status = allocator_.CheckInvariants();
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(trace_.name, ", seed ", options_.seed, ", run ", run, ", event ",
                                                      i, ": ", status.message()));
    }
  }
  absl::Status status = FreeTheRest(run);
  status.Update(allocator_.CheckInvariants());
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(trace_.name, ", seed ", options_.seed, ", at the end of run ", run,
                                                  ": ", status.message()));
}

absl::Status StressProgram::Apply(uint64_t run, const bench::TraceEvent& event) {
  if (options_.queued_work) {
    device_.simulator().Advance(microseconds(rng_.Between(0, kMostMicrosecondsBetweenEvents)));
  }
  switch (event.op) {
    case bench::TraceOp::kAllocate:
      return Allocate(run, event);
    case bench::TraceOp::kFree:
      return Free(run, event.block);
    default:
      return absl::OkStatus();
  }
}

uint64_t StressProgram::Key(uint64_t run, uint32_t block) const { return (options_.seed << 48) ^ (run << 32) ^ block; }

absl::Status StressProgram::Allocate(uint64_t run, const bench::TraceEvent& event) {
  const StreamHandle stream = streams_[static_cast<size_t>(event.stream)];
  const Bytes size(event.value);
  const absl::StatusOr<DeviceAddress> address = allocator_.Allocate(size, stream);
  if (!address.ok()) {
    if (options_.must_serve || !absl::IsResourceExhausted(address.status())) return address.status();
    ++refused_;
    return absl::OkStatus();
  }
  if (address->value() % kBlockAlignment.count() != 0) {
    return absl::InternalError(absl::StrCat("block at ", ToString(*address), ": expected a multiple of 512"));
  }
  Block& block = blocks_[event.block];
  block = {{*address, size}, stream};
  if (options_.contents_by_chunk.has_value()) {
    WriteContents(block.range, *options_.contents_by_chunk, Key(run, event.block));
  }
  return options_.queued_work ? QueueWork(block) : absl::OkStatus();
}

absl::Status StressProgram::Free(uint64_t run, uint32_t index) {
  Block& block = blocks_[index];
  if (block.range.begin.is_null()) return absl::OkStatus();  // it was refused
  if (options_.contents_by_chunk.has_value()) {
    const absl::Status status = CheckContents(block.range, *options_.contents_by_chunk, Key(run, index));
    if (!status.ok()) return absl::Status(status.code(), absl::StrCat("block ", index, " ", status.message()));
  }
  bool free_where_used = false;
  if (options_.queued_work) {
    if (absl::Status status = QueueWork(block); !status.ok()) return status;
    if (streams_.size() > 1 && rng_.Chance(kUsedElsewhere)) {
      if (absl::Status status = UseElsewhere(block, free_where_used); !status.ok()) return status;
    }
  }
  const DeviceAddress address = block.range.begin;
  const StreamHandle last_used = block.last_used;
  block = Block();
  return free_where_used ? allocator_.Free(address, last_used) : allocator_.Free(address);
}

absl::Status StressProgram::FreeTheRest(uint64_t run) {
  std::vector<uint32_t> live;
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i].range.begin.is_null()) live.push_back(i);
  }
  while (!live.empty()) {
    std::swap(live[rng_.Between(0, live.size() - 1)], live.back());
    if (absl::Status status = Free(run, live.back()); !status.ok()) return status;
    live.pop_back();
  }
  return absl::OkStatus();
}

absl::Status StressProgram::QueueWork(const Block& block) {
  const uint64_t length = rng_.Chance(kLongWork) ? kMicrosecondsOfLongWork : rng_.Between(0, kMostMicrosecondsOfWork);
  const sim::Access access{block.range, /*writes=*/true};
  const abi::Result result = device_.simulator().Launch(block.last_used, microseconds(length), {access});
  return ToStatus(device_.driver(), result, "Launch");
}

absl::Status StressProgram::UseElsewhere(Block& block, bool& free_where_used) {
  const StreamHandle other = streams_[rng_.Between(0, streams_.size() - 1)];
  if (other == block.last_used) return absl::OkStatus();
  if (absl::Status status = device_.Order(block.last_used, other); !status.ok()) return status;
  block.last_used = other;
  free_where_used = rng_.Chance(0.5);
  if (!free_where_used) {
    if (absl::Status status = allocator_.RecordUse(block.range.begin, other); !status.ok()) return status;
  }
  return QueueWork(block);
}

}  // namespace expanse::stress

#include "bench/replay/replayer.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace expanse::bench {
namespace {

constexpr uint64_t kProgressInterval = 4096;  // events

const char* Verb(TraceOp op) {
  switch (op) {
    case TraceOp::kAllocate:
      return "allocation";
    case TraceOp::kFree:
      return "free";
    case TraceOp::kMark:
      return "mark";
    case TraceOp::kUse:
      return "use";
    case TraceOp::kWork:
      return "work";
    case TraceOp::kWait:
      return "wait";
  }
  return "row";
}

uint64_t CountEvents(const Trace& trace) {
  return std::count_if(trace.events.begin(), trace.events.end(), [](const TraceEvent& event) {
    return event.op == TraceOp::kAllocate || event.op == TraceOp::kFree;
  });
}

}  // namespace

Replayer::Replayer(const Trace& trace, const ReplayOptions& options, ReplayDevice& device, Program* program,
                   BenchAllocator& allocator)
    : trace_(trace),
      options_(options),
      device_(device),
      program_(program),
      allocator_(allocator),
      blocks_(trace.block_count()),
      total_events_(CountEvents(trace) * options.repeat),
      timeline_(total_events_) {}

absl::StatusOr<ReplayResult> Replayer::Run() {
  for (uint64_t run = 0; run < options_.repeat && !stopped_; ++run) {
    if (run > 0) {
      if (absl::Status status = FreeLiveBlocks(); !status.ok() && !EndedByHazard(status)) return status;
      if (stopped_) break;
    }
    if (absl::Status status = RunOnce(); !status.ok()) return status;
  }
  if (device_.hazard_count() == 0) {
    if (absl::Status status = CheckLiveContents(); !status.ok()) return status;
  }
  CloseMark();
  FillIn(&result_);
  if (options_.record_timeline) result_.timeline = std::move(timeline_).Take();
  return std::move(result_);
}

absl::Status Replayer::RunOnce() {
  for (const TraceEvent& event : trace_.events) {
    absl::Status status = Step(event);
    if (status.ok() && options_.check_invariants) status = allocator_.CheckInvariants();
    if (!status.ok() && !EndedByHazard(status)) return Located(status, event);
    if (stopped_) break;
  }
  return absl::OkStatus();
}

absl::Status Replayer::Step(const TraceEvent& event) {
  switch (event.op) {
    case TraceOp::kAllocate: {
      if (absl::Status status = Allocate(event); !status.ok() || stopped_) return status;
      return EventDone();
    }
    case TraceOp::kFree: {
      if (absl::Status status = Free(event); !status.ok()) return status;
      return EventDone();
    }
    case TraceOp::kMark:
      return Mark(trace_.labels[event.block]);
    case TraceOp::kUse: {
      const Block& block = blocks_[event.block];
      if (block.address.is_null()) return absl::OkStatus();
      const StreamHandle stream = device_.stream(event.stream);
      if (program_ != nullptr) {
        if (absl::Status status = program_->Used(event.block, block.range(), stream); !status.ok()) return status;
      }
      return allocator_.RecordUse(block.address, stream);
    }
    case TraceOp::kWork: {
      const Block& block = blocks_[event.block];
      if (program_ == nullptr || block.address.is_null()) return absl::OkStatus();
      return program_->Worked(event.block, block.range(), device_.stream(event.stream), event.value);
    }
    case TraceOp::kWait:
      return device_.Wait(device_.stream(event.stream));
  }
  return absl::InternalError("a row of no known kind");
}

absl::Status Replayer::Allocate(const TraceEvent& event) {
  const Bytes size(event.value);
  const StreamHandle stream = device_.stream(event.stream);
  absl::StatusOr<DeviceAddress> address = allocator_.Allocate(size, stream);
  if (!address.ok()) return RequestFailed(size, address.status());
  if (address->is_null()) return absl::InternalError("the allocator returned a null address");
  Block& block = blocks_[event.block];
  block = {*address, size, event.stream};
  live_ += size;
  peak_live_ = std::max(peak_live_, live_);
  if (program_ != nullptr) {
    if (absl::Status status = program_->Allocated(event.block, block.range(), stream); !status.ok()) return status;
  }
  if (options_.touch) return WriteContents(device_, block.range(), ContentsKey(event.block));
  return absl::OkStatus();
}

absl::Status Replayer::Free(const TraceEvent& event) {
  if (blocks_[event.block].address.is_null()) return absl::OkStatus();  // its request failed
  return FreeBlock(event.block, device_.stream(event.stream));
}

absl::Status Replayer::FreeBlock(uint32_t index, StreamHandle stream) {
  Block& block = blocks_[index];
  if (options_.touch) {
    if (absl::Status status = CheckContents(device_, block.range(), ContentsKey(index)); !status.ok()) return status;
  }
  if (program_ != nullptr) {
    if (absl::Status status = program_->BeforeFree(index, block.range(), stream); !status.ok()) return status;
  }
  if (absl::Status status = allocator_.Free(block.address, stream); !status.ok()) return status;
  live_ -= block.size;
  block.address = DeviceAddress();
  return absl::OkStatus();
}

absl::Status Replayer::Mark(const std::string& label) {
  CloseMark();
  MarkFigures mark;
  mark.label = label;
  mark.event = event_;
  result_.marks.push_back(std::move(mark));
  if (absl::Status status = allocator_.Mark(label); !status.ok()) return status;
  absl::string_view digits = label;
  uint64_t bytes = 0;
  if (options_.retry_oom && absl::ConsumePrefix(&digits, "oom_") && absl::SimpleAtoi(digits, &bytes) && bytes > 0) {
    return RetryOutOfMemory(Bytes(bytes));
  }
  return absl::OkStatus();
}

absl::Status Replayer::RetryOutOfMemory(Bytes size) {
  const StreamHandle stream = device_.stream(0);
  absl::StatusOr<DeviceAddress> address = allocator_.Allocate(size, stream);
  if (!address.ok()) return RequestFailed(size, address.status());
  peak_live_ = std::max(peak_live_, live_ + size);
  return allocator_.Free(*address, stream);
}

absl::Status Replayer::FreeLiveBlocks() {
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].address.is_null()) continue;
    if (absl::Status status = FreeBlock(i, device_.stream(blocks_[i].stream)); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("freeing block ", trace_.ids[i], " between two runs of ",
                                                      trace_.name, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Replayer::CheckLiveContents() {
  if (!options_.touch) return absl::OkStatus();
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].address.is_null()) continue;
    if (absl::Status status = CheckContents(device_, blocks_[i].range(), ContentsKey(i)); !status.ok()) {
      return absl::Status(
          status.code(), absl::StrCat("block ", trace_.ids[i], " of ", ToString(blocks_[i].size), ", live after event ",
                                      event_, " of ", trace_.name, ", is ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Replayer::RequestFailed(Bytes size, const absl::Status& why) {
  if (why.code() != absl::StatusCode::kResourceExhausted) return why;
  ++result_.failed_allocations;
  if (!result_.out_of_memory) {
    const Bytes reserved = allocator_.figures().reserved;
    result_.out_of_memory = true;
    result_.failed_at_event = event_;
    result_.failed_request = size;
    if (!result_.marks.empty()) result_.failed_in_mark = result_.marks.back().label;
    result_.unused_at_failure = reserved - std::min(live_, reserved);
    result_.failure_message = std::string(why.message());
  }
  stopped_ = !options_.keep_going;
  return absl::OkStatus();
}

absl::Status Replayer::EventDone() {
  if (program_ != nullptr) {
    program_->EventDone();
    if (device_.hazard_count() > 0) return absl::InternalError("hazard");
  }
  if (options_.record_timeline) {
    const AllocatorFigures figures = allocator_.figures();
    timeline_.Add({event_, live_, figures.allocated, figures.pending, figures.reserved});
  }
  ++event_;
  if (options_.progress && event_ % kProgressInterval == 0) options_.progress(event_, total_events_);
  return absl::OkStatus();
}

void Replayer::CloseMark() {
  const DriverUse use = device_.use();
  if (!result_.marks.empty()) {
    MarkFigures& mark = result_.marks.back();
    mark.driver_calls = use.TotalCalls() - calls_at_mark_;
    if (use.modelled_us.has_value()) mark.modelled_driver_us = *use.modelled_us - modelled_us_at_mark_.value_or(0);
  }
  calls_at_mark_ = use.TotalCalls();
  modelled_us_at_mark_ = use.modelled_us;
}

bool Replayer::EndedByHazard(const absl::Status& status) {
  if (device_.hazard_count() == 0) return false;
  stopped_ = true;
  const std::vector<std::string> hazards = device_.FirstHazards();
  result_.failure_message = absl::StrCat(
      "ended at event ", event_, " by a hazard: ", hazards.empty() ? std::string(status.message()) : hazards.front());
  return true;
}

absl::Status Replayer::Located(const absl::Status& status, const TraceEvent& event) const {
  std::string where = absl::StrCat(options_.allocator, ", ", trace_.name, ", event ", event_, ", ", Verb(event.op));
  if (event.op != TraceOp::kMark && event.op != TraceOp::kWait) {
    absl::StrAppend(&where, " of block ", trace_.ids[event.block]);
    const Bytes size = event.op == TraceOp::kAllocate ? Bytes(event.value) : blocks_[event.block].size;
    absl::StrAppend(&where, " of ", ToString(size));
  }
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

void Replayer::FillIn(ReplayResult* result) const {
  const AllocatorFigures figures = allocator_.figures();
  const DriverUse use = device_.use();
  result->allocator = options_.allocator;
  result->device_name = device_.name();
  result->capacity = device_.total_memory();
  result->events = total_events_;
  result->peak_live = peak_live_;
  result->peak_allocated = figures.peak_allocated;
  result->peak_pending = figures.peak_pending;
  result->peak_reserved = figures.peak_reserved;
  result->driver_calls = use.calls;
  result->modelled_driver_us = use.modelled_us;
  result->measured_driver_us = use.measured_us;
  result->stall_us = use.stall_us;
  result->chunks_created = figures.chunks_created;
  result->chunks_moved = figures.chunks_moved;
  result->address_space_peak = figures.peak_address_space;
}

uint64_t Replayer::ContentsKey(uint32_t block) const { return options_.seed * 0x9E3779B97F4A7C15 + block; }

}  // namespace expanse::bench

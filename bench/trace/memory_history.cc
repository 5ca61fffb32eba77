#include "bench/trace/memory_history.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace expanse::bench {
namespace {

// Blocks live before the history begins, in order of address. At one moment live blocks have different addresses, so
// the first word about an address tells: if it is a free, or there is none though a block is live there at the end, the
// block was there before.
std::vector<HistoryBlock> Prologue(const MemoryHistory& history) {
  std::vector<HistoryBlock> blocks;
  absl::flat_hash_set<DeviceAddress> mentioned;
  for (const HistoryEvent& e : history.events) {
    if (e.kind == HistoryEvent::Kind::kOutOfMemory) continue;
    const bool first = mentioned.insert(e.address).second;
    if (first && e.kind != HistoryEvent::Kind::kAllocate) blocks.push_back({e.address, e.size, e.stream});
  }
  for (const HistoryBlock& block : history.live_at_end) {
    if (mentioned.insert(block.address).second) blocks.push_back(block);
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const HistoryBlock& a, const HistoryBlock& b) { return a.address < b.address; });
  return blocks;
}

class Builder {
 public:
  Builder(absl::string_view name, std::vector<std::string>& warnings) : warnings_(warnings) {
    trace_.name = std::string(name);
  }

  absl::StatusOr<Trace> Run(const MemoryHistory& history) {
    streams_[0] = 0;
    const std::vector<HistoryBlock> prologue = Prologue(history);
    trace_.events.reserve(prologue.size() + 1 + history.events.size());
    for (const HistoryBlock& block : prologue) Allocate(block.address, block.size, block.stream);
    if (!prologue.empty()) Mark(std::string(kPrologueMark));
    for (const HistoryEvent& e : history.events) Add(e);
    Warn(history);
    const absl::Status status = Validate(trace_);
    if (!status.ok()) return status;
    return std::move(trace_);
  }

 private:
  struct LiveBlock {
    uint32_t block;
    int32_t stream;
  };

  void Add(const HistoryEvent& e) {
    switch (e.kind) {
      case HistoryEvent::Kind::kAllocate:
        // An address given out twice: its free was lost, and happened before now.
        if (Free(e.address)) ++lost_frees_;
        Allocate(e.address, e.size, e.stream);
        break;
      case HistoryEvent::Kind::kFreeRequested:
        break;
      case HistoryEvent::Kind::kFreeCompleted:
        if (!Free(e.address)) ++stray_frees_;
        break;
      case HistoryEvent::Kind::kOutOfMemory:
        Mark(absl::StrCat("oom_", e.size.count()));
        break;
    }
  }

  void Allocate(DeviceAddress address, Bytes size, uint64_t raw_stream) {
    const auto [stream, added] = streams_.try_emplace(raw_stream, static_cast<int32_t>(streams_.size()));
    const uint32_t block = trace_.block_count();
    trace_.ids.push_back(block);
    trace_.events.push_back({TraceOp::kAllocate, stream->second, block, size.count()});
    live_[address] = {block, stream->second};
  }

  bool Free(DeviceAddress address) {
    const auto entry = live_.find(address);
    if (entry == live_.end()) return false;
    trace_.events.push_back({TraceOp::kFree, entry->second.stream, entry->second.block, 0});
    live_.erase(entry);
    return true;
  }

  void Mark(std::string label) {
    trace_.events.push_back({TraceOp::kMark, 0, static_cast<uint32_t>(trace_.labels.size()), 0});
    trace_.labels.push_back(std::move(label));
  }

  void Warn(const MemoryHistory& history) {
    if (lost_frees_ > 0) {
      warnings_.push_back(
          absl::StrCat(trace_.name, ": ", lost_frees_,
                       " allocations at addresses that were live; the earlier block is freed just before"));
    }
    if (stray_frees_ > 0) {
      warnings_.push_back(
          absl::StrCat(trace_.name, ": ", stray_frees_, " frees of addresses that were not live, left out"));
    }
    if (history.knows_live_at_end && live_.size() != history.live_at_end.size()) {
      warnings_.push_back(absl::StrCat(trace_.name, ": ", live_.size(), " blocks are live after the last event, but ",
                                       history.live_at_end.size(), " in the list of segments"));
    }
  }

  std::vector<std::string>& warnings_;
  Trace trace_;
  absl::flat_hash_map<DeviceAddress, LiveBlock> live_;
  absl::flat_hash_map<uint64_t, int32_t> streams_;
  uint64_t lost_frees_ = 0;
  uint64_t stray_frees_ = 0;
};

}  // namespace

absl::StatusOr<Trace> TraceFromHistory(const MemoryHistory& history, absl::string_view name,
                                       std::vector<std::string>& warnings) {
  const size_t most = std::numeric_limits<int32_t>::max();
  if (history.events.size() >= most || history.live_at_end.size() >= most) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", history.events.size(), " events, expected fewer than ", most));
  }
  return Builder(name, warnings).Run(history);
}

}  // namespace expanse::bench

// ToPyTorchPickle of snapshot.h. The layout is that of torch/csrc/cuda/memory_snapshot.cpp and torch/cuda/memory.py.

#include <string_view>
#include <utility>

#include "core/pickle_writer.h"
#include "core/snapshot.h"

namespace expanse {
namespace {

int64_t Signed(Bytes size) { return static_cast<int64_t>(size.count()); }
int64_t Signed(DeviceAddress address) { return static_cast<int64_t>(address.value()); }

class SnapshotPickler {
 public:
  explicit SnapshotPickler(const Snapshot& snapshot) : snapshot_(snapshot) {}

  std::string Run() && {
    pickle_.BeginDict();
    pickle_.Key("segments");
    pickle_.BeginList();
    for (const SnapshotSegment& segment : snapshot_.segments) AddSegment(segment);
    pickle_.End();
    pickle_.Key("device_traces");
    AddTraces();
    pickle_.Key("allocator_settings");
    AddSettings();
    pickle_.Key("external_annotations");
    AddMarks();
    pickle_.End();
    return std::move(pickle_).Finish();
  }

 private:
  void Add(std::string_view key, int64_t value) {
    pickle_.Key(key);
    pickle_.Int(value);
  }
  void Add(std::string_view key, std::string_view value) {
    pickle_.Key(key);
    pickle_.String(value);
  }
  void AddNoFrames() {
    pickle_.Key("frames");
    pickle_.BeginList();
    pickle_.End();
  }

  // PyTorch gives each run of mapped memory as a segment of its own.
  void AddSegment(const SnapshotSegment& segment) {
    size_t begin = 0;
    while (begin < segment.blocks.size()) {
      if (segment.blocks[begin].state == SnapshotBlockState::kQuarantined) {
        ++begin;
        continue;
      }
      size_t end = begin + 1;
      while (end < segment.blocks.size() && segment.blocks[end].state != SnapshotBlockState::kQuarantined &&
             segment.blocks[end].address == segment.blocks[end - 1].address + segment.blocks[end - 1].size) {
        ++end;
      }
      AddRun(segment, begin, end);
      begin = end;
    }
  }

  void AddRun(const SnapshotSegment& segment, size_t begin, size_t end) {
    Bytes total, allocated, active, requested;
    for (size_t i = begin; i < end; ++i) {
      const SnapshotBlock& block = segment.blocks[i];
      total += block.size;
      requested += block.requested;
      if (block.state == SnapshotBlockState::kLive) allocated += block.size;
      if (block.state != SnapshotBlockState::kFree) active += block.size;
    }
    pickle_.BeginDict();
    Add("device", snapshot_.device);
    Add("address", Signed(segment.blocks[begin].address));
    Add("total_size", Signed(total));
    Add("allocated_size", Signed(allocated));
    Add("active_size", Signed(active));
    Add("requested_size", Signed(requested));
    Add("stream", segment.stream);
    Add("segment_type", segment.size_class == 0 ? "small" : "large");
    pickle_.Key("segment_pool_id");
    pickle_.Pair(0, static_cast<int64_t>(segment.pool));
    pickle_.Key("is_expandable");
    pickle_.Bool(true);
    AddNoFrames();
    pickle_.Key("blocks");
    pickle_.BeginList();
    for (size_t i = begin; i < end; ++i) AddBlock(segment.blocks[i]);
    pickle_.End();
    pickle_.End();
  }

  void AddBlock(const SnapshotBlock& block) {
    pickle_.BeginDict();
    Add("address", Signed(block.address));
    Add("size", Signed(block.size));
    Add("requested_size", Signed(block.requested));
    Add("state", block.state == SnapshotBlockState::kLive      ? "active_allocated"
                 : block.state == SnapshotBlockState::kPending ? "active_pending_free"
                                                               : "inactive");
    AddNoFrames();
    pickle_.End();
  }

  // One list for each device; all but ours are empty.
  void AddTraces() {
    pickle_.BeginList();
    for (int device = 0; device <= snapshot_.device; ++device) {
      pickle_.BeginList();
      if (device == snapshot_.device) {
        for (const SnapshotEvent& event : snapshot_.events) AddEvent(event);
      }
      pickle_.End();
    }
    pickle_.End();
  }

  void AddEvent(const SnapshotEvent& event) {
    switch (event.kind) {
      case SnapshotEventKind::kAllocate:
        return AddAction("alloc", event);
      case SnapshotEventKind::kFree:
        AddAction("free_requested", event);
        return AddAction("free_completed", event);
      case SnapshotEventKind::kFreePending:
        return AddAction("free_requested", event);
      case SnapshotEventKind::kSettle:
        return AddAction("free_completed", event);
      case SnapshotEventKind::kOutOfMemory:
        return AddAction("oom", event);
      case SnapshotEventKind::kMap:
        return AddAction("segment_map", event);
      case SnapshotEventKind::kUnmap:
        return AddAction("segment_unmap", event);
      case SnapshotEventKind::kUse:
      case SnapshotEventKind::kMark:
        return;
    }
  }

  void AddAction(std::string_view action, const SnapshotEvent& event) {
    pickle_.BeginDict();
    Add("action", action);
    if (event.kind == SnapshotEventKind::kOutOfMemory) {
      Add("device_free", Signed(event.device_free));
    } else {
      Add("addr", Signed(event.address));
    }
    Add("size", Signed(event.bytes));
    Add("stream", event.stream);
    Add("time_us", static_cast<int64_t>(event.time_us));
    AddNoFrames();
    pickle_.End();
  }

  void AddSettings() {
    pickle_.BeginDict();
    Add("PYTORCH_CUDA_ALLOC_CONF", "");
    Add("max_split_size", -1);
    pickle_.Key("garbage_collection_threshold");
    pickle_.Float(0);
    pickle_.Key("expandable_segments");
    pickle_.Bool(true);
    pickle_.End();
  }

  void AddMarks() {
    pickle_.BeginList();
    for (const SnapshotEvent& event : snapshot_.events) {
      if (event.kind != SnapshotEventKind::kMark) continue;
      pickle_.BeginDict();
      Add("name", event.label);
      Add("stage", "START");
      Add("device", snapshot_.device);
      Add("time_us", static_cast<int64_t>(event.time_us));
      pickle_.End();
    }
    pickle_.End();
  }

  const Snapshot& snapshot_;
  PickleWriter pickle_;
};

}  // namespace

std::string ToPyTorchPickle(const Snapshot& snapshot) { return SnapshotPickler(snapshot).Run(); }

}  // namespace expanse

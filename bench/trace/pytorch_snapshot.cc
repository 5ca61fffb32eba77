#include "bench/trace/pytorch_snapshot.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/trace/memory_history.h"
#include "bench/trace/pickle_dict_reader.h"
#include "bench/trace/unknown_names.h"

namespace expanse::bench {
namespace {

template <size_t n>
bool IsOneOf(absl::string_view name, const absl::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Keys and actions that are known and say nothing about the program's requests.
constexpr absl::string_view kIgnoredKeys[] = {
    "frames",
    "time_us",
    "compile_context",
    "user_metadata",
    "pool_id",
    "forward_frames",
    "device_free",
    "total_size",
    "allocated_size",
    "active_size",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "requested_size",
    "addr",
    "external_annotations",
    "allocator_settings",
    "registration_counter",
};
constexpr absl::string_view kIgnoredActions[] = {"segment_alloc", "segment_free", "segment_map",
                                                 "segment_unmap", "snapshot",     "user_defined"};

class SnapshotReader {
 public:
  SnapshotReader(size_t pickle_size, absl::string_view name, std::vector<std::string>& warnings)
      : dicts_(pickle_size, name, kIgnoredKeys), name_(name), warnings_(warnings) {}

  absl::StatusOr<Trace> Run(PickleValue root, std::optional<DeviceOrdinal> device) {
    PickleField top[] = {{"device_traces"}, {"segments"}};
    auto& [traces, segments] = top;
    const auto at_root = [] { return std::string("the snapshot"); };
    if (root.is_sequence()) {
      return dicts_.Error(
          at_root, absl::StrCat(root.Describe(),
                                " (of segments, perhaps, which record no events), expected a dict with device_traces"));
    }
    absl::Status status = dicts_.Read(root, at_root, top);
    if (status.ok()) status = dicts_.WantList(traces, [] { return std::string("device_traces"); });
    if (status.ok() && traces.value->size() == 0)
      status = dicts_.Error([] { return std::string("device_traces"); }, "an empty list, expected one per device");
    if (status.ok()) status = ChooseDevice(*traces.value, device);
    if (status.ok()) status = ReadEvents();
    if (status.ok() && segments.value.has_value()) status = ReadSegments(segments);
    if (!status.ok()) return status;
    Warn(segments.value.has_value());
    return TraceFromHistory(history_, name_, warnings_);
  }

 private:
  absl::Status ChooseDevice(PickleValue traces, std::optional<DeviceOrdinal> wanted) {
    if (wanted.has_value() && (wanted->value() < 0 || static_cast<uint32_t>(wanted->value()) >= traces.size())) {
      return absl::NotFoundError(absl::StrCat(name_, ": device ", wanted->value(), ", expected one of the ",
                                              traces.size(), " in device_traces"));
    }
    std::vector<std::string> others;
    uint32_t index = 0;
    for (PickleCursor items(traces); items.HasNext(); ++index) {
      const PickleValue events = items.Next();
      if (!events.is_sequence()) {
        return dicts_.Error([=] { return absl::StrCat("device_traces[", index, "]"); },
                            absl::StrCat(events.Describe(), ", expected a list"));
      }
      const bool better = !events_.has_value() || events.size() > events_->size();
      if (wanted.has_value() ? index == static_cast<uint32_t>(wanted->value()) : better) {
        events_ = events;
        device_ = index;
      }
    }
    index = 0;
    constexpr size_t kMostNamed = 16;
    for (PickleCursor items(traces); items.HasNext() && others.size() < kMostNamed; ++index) {
      const uint32_t size = items.Next().size();
      if (index != device_ && size > 0) others.push_back(absl::StrCat("device ", index, " (", size, " events)"));
    }
    if (!others.empty()) {
      warnings_.push_back(absl::StrCat(name_, ": took device ", device_, " (", events_->size(), " events), left out ",
                                       absl::StrJoin(others, ", ")));
    }
    return absl::OkStatus();
  }

  absl::Status ReadEvents() {
    absl::Status status = dicts_.Charge(events_->size());
    size_t index = 0;
    for (PickleCursor items(*events_); status.ok() && items.HasNext(); ++index) {
      const auto place = [&] { return absl::StrCat("device_traces[", device_, "][", index, "]"); };
      status = ReadEvent(items.Next(), place);
    }
    return status;
  }

  absl::Status ReadEvent(PickleValue entry, PicklePlace place) {
    PickleField fields[] = {{"action"}, {"addr"}, {"size"}, {"stream"}};
    const auto& [action, addr, size, stream] = fields;
    absl::Status status = dicts_.Read(entry, place, fields);
    absl::string_view name;
    status.Update(status.ok() ? dicts_.Want(action, place, name) : status);
    if (!status.ok()) return status;

    HistoryEvent event{};
    if (name == "alloc") {
      event.kind = HistoryEvent::Kind::kAllocate;
    } else if (name == "free_requested") {
      event.kind = HistoryEvent::Kind::kFreeRequested;
    } else if (name == "free_completed") {
      event.kind = HistoryEvent::Kind::kFreeCompleted;
    } else if (name == "oom") {
      event.kind = HistoryEvent::Kind::kOutOfMemory;
    } else {
      if (!IsOneOf(name, kIgnoredActions)) unknown_actions_.Add(*action.value);
      return absl::OkStatus();
    }
    uint64_t bytes = 0;
    status = dicts_.Want(size, place, 1, bytes);
    event.size = Bytes(bytes);
    if (event.kind != HistoryEvent::Kind::kOutOfMemory) {
      uint64_t address = 0;
      status.Update(dicts_.Want(addr, place, 1, address));
      status.Update(dicts_.Want(stream, place, 0, event.stream));
      event.address = DeviceAddress(address);
    }
    if (status.ok()) history_.events.push_back(event);
    return status;
  }

  absl::Status ReadSegments(const PickleField& segments) {
    absl::Status status = dicts_.WantList(segments, [] { return std::string("segments"); });
    if (!status.ok()) return status;
    history_.knows_live_at_end = true;
    size_t index = 0;
    for (PickleCursor items(*segments.value); status.ok() && items.HasNext(); ++index) {
      status = ReadSegment(items.Next(), [&] { return absl::StrCat("segments[", index, "]"); });
    }
    return status;
  }

  absl::Status ReadSegment(PickleValue segment, PicklePlace place) {
    PickleField fields[] = {{"device"}, {"address"}, {"stream"}, {"blocks"}};
    const auto& [device, address, stream, blocks] = fields;
    absl::Status status = dicts_.Read(segment, place, fields);
    uint64_t segment_device = 0;
    if (status.ok() && device.value.has_value()) status = dicts_.Want(device, place, 0, segment_device);
    if (!status.ok() || segment_device != device_) return status;

    HistoryBlock block;
    uint64_t next_address = 0;
    status = dicts_.Want(address, place, 1, next_address);
    status.Update(dicts_.Want(stream, place, 0, block.stream));
    if (status.ok()) status = dicts_.WantList(blocks, [&] { return absl::StrCat(place(), ".blocks"); });
    if (!status.ok()) return status;
    size_t index = 0;
    for (PickleCursor items(*blocks.value); status.ok() && items.HasNext(); ++index) {
      status = ReadBlock(
          items.Next(), [&] { return absl::StrCat(place(), ".blocks[", index, "]"); }, block.stream, next_address);
    }
    return status;
  }

  // `address` comes in as where the block lies unless it says so itself (before PyTorch 2.1 blocks do not: they fill
  // their segment in order), and goes out as the end of the block.
  absl::Status ReadBlock(PickleValue value, PicklePlace place, uint64_t stream, uint64_t& address) {
    PickleField fields[] = {{"address"}, {"size"}, {"requested_size"}, {"state"}, {"history"}};
    const auto& [own_address, size, requested_size, state, history] = fields;
    absl::Status status = dicts_.Read(value, place, fields);
    uint64_t bytes = 0;
    absl::string_view name;
    if (status.ok()) status = dicts_.Want(size, place, 1, bytes);
    if (status.ok() && own_address.value.has_value()) status = dicts_.Want(own_address, place, 1, address);
    if (status.ok()) status = dicts_.Want(state, place, name);
    if (!status.ok()) return status;

    const DeviceAddress begin(address);
    address += bytes;
    if (name != "active_allocated" && name != "active_pending_free" && name != "active_awaiting_free") {
      if (name != "inactive") unknown_states_.Add(*state.value);
      return status;
    }
    if (requested_size.value.has_value()) {
      status = dicts_.Want(requested_size, place, 1, bytes);
    } else if (history.value.has_value()) {
      status = ReadOldHistory(history, place, bytes);
    } else {
      ++rounded_blocks_;
    }
    history_.live_at_end.push_back({begin, Bytes(bytes), stream});
    return status;
  }

  // Before PyTorch 2.1 the size asked for is in the block's list of past uses, the latest first.
  absl::Status ReadOldHistory(const PickleField& history, PicklePlace place, uint64_t& bytes) {
    const absl::Status status = dicts_.WantList(history, [&] { return absl::StrCat(place(), ".history"); });
    if (!status.ok()) return status;
    PickleCursor uses(*history.value);
    if (!uses.HasNext()) {
      ++rounded_blocks_;
      return status;
    }
    const auto at = [&] { return absl::StrCat(place(), ".history[0]"); };
    PickleField fields[] = {{"real_size"}};
    const absl::Status read = dicts_.Read(uses.Next(), at, fields);
    return read.ok() ? dicts_.Want(fields[0], at, 1, bytes) : read;
  }

  void Warn(bool has_segments) {
    dicts_.unknown_keys().Warn(name_, "keys", warnings_);
    unknown_actions_.Warn(name_, "actions", warnings_);
    unknown_states_.Warn(name_, "states of blocks", warnings_);
    if (rounded_blocks_ > 0) {
      warnings_.push_back(absl::StrCat(name_, ": ", rounded_blocks_,
                                       " live blocks do not say what was asked for; their rounded size is taken"));
    }
    if (!has_segments)
      warnings_.push_back(absl::StrCat(name_, ": no list of segments; blocks live all the time are missing"));
    if (history_.events.empty()) {
      warnings_.push_back(
          absl::StrCat(name_, ": no allocation was recorded on device ", device_,
                       " (_record_memory_history turns it on); the trace holds the blocks that were live"));
    }
  }

  PickleDictReader dicts_;
  const absl::string_view name_;
  std::vector<std::string>& warnings_;
  std::optional<PickleValue> events_;
  uint32_t device_ = 0;
  MemoryHistory history_;
  UnknownNames unknown_actions_;
  UnknownNames unknown_states_;
  uint64_t rounded_blocks_ = 0;
};

}  // namespace

absl::StatusOr<Trace> TraceFromPyTorchSnapshot(PickleValue root, size_t pickle_size,
                                               std::optional<DeviceOrdinal> device, absl::string_view name,
                                               std::vector<std::string>& warnings) {
  return SnapshotReader(pickle_size, name, warnings).Run(root, device);
}

}  // namespace expanse::bench

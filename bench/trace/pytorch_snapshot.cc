#include "bench/trace/pytorch_snapshot.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/trace/memory_history.h"

namespace expanse::bench {
namespace {

// Names that the file uses and this reader does not know, and how often. Keeps a few names, however many there are.
class UnknownNames {
 public:
  void Add(PickleValue name) {
    constexpr size_t kMostNames = 8;
    ++total_;
    if (names_.size() < kMostNames) names_.insert(name.Describe());
  }
  void Warn(absl::string_view file, absl::string_view what, std::vector<std::string>& warnings) const {
    if (total_ == 0) return;
    warnings.push_back(
        absl::StrCat(file, ": ", total_, " ", what, " not known here, ignored: ", absl::StrJoin(names_, ", ")));
  }

 private:
  uint64_t total_ = 0;
  std::set<std::string> names_;
};

// Where in the structure a value is. Called for messages only.
using Place = absl::FunctionRef<std::string()>;

// One key of a dict that is looked for, and what was found.
struct Field {
  absl::string_view key;
  std::optional<PickleValue> value = std::nullopt;
};

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
      : budget_(pickle_size), name_(name), warnings_(warnings) {}

  absl::StatusOr<Trace> Run(PickleValue root, std::optional<DeviceOrdinal> device) {
    Field top[] = {{"device_traces"}, {"segments"}};
    auto& [traces, segments] = top;
    const auto at_root = [] { return std::string("the snapshot"); };
    if (root.is_sequence()) {
      return Error(at_root,
                   absl::StrCat(root.Describe(),
                                " (of segments, perhaps, which record no events), expected a dict with device_traces"));
    }
    absl::Status status = ReadDict(root, at_root, top);
    if (status.ok()) status = WantList(traces, [] { return std::string("device_traces"); });
    if (status.ok() && traces.value->size() == 0)
      status = Error([] { return std::string("device_traces"); }, "an empty list, expected one per device");
    if (status.ok()) status = ChooseDevice(*traces.value, device);
    if (status.ok()) status = ReadEvents();
    if (status.ok() && segments.value.has_value()) status = ReadSegments(segments);
    if (!status.ok()) return status;
    Warn(segments.value.has_value());
    return TraceFromHistory(history_, name_, warnings_);
  }

 private:
  absl::Status Error(Place place, absl::string_view problem) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", place(), ": ", problem));
  }

  // Entries in an honest file take at least this many bytes each: a list's item one, a dict's key and value three.
  absl::Status Charge(uint64_t bytes) {
    if (bytes > budget_) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": more entries than the file has room for: its lists share one another"));
    }
    budget_ -= bytes;
    return absl::OkStatus();
  }

  // Fills in the fields that the dict has; of a key that was set twice the last counts, as in Python.
  template <size_t n>
  absl::Status ReadDict(PickleValue dict, Place place, Field (&fields)[n]) {
    if (!dict.is_dict()) return Error(place, absl::StrCat(dict.Describe(), ", expected a dict"));
    const absl::Status status = Charge(uint64_t{3} * dict.size());
    if (!status.ok()) return status;
    for (PickleCursor items(dict); items.HasNext();) {
      const PickleValue key = items.Next();
      const PickleValue value = items.Next();
      const absl::string_view text = key.AsString().value_or(absl::string_view());
      Field* field = std::find_if(fields, fields + n, [text](const Field& f) { return f.key == text; });
      if (field != fields + n) {
        field->value = value;
      } else if (!IsOneOf(text, kIgnoredKeys)) {
        unknown_keys_.Add(key);
      }
    }
    return absl::OkStatus();
  }

  absl::Status WantList(const Field& field, Place place) {
    if (!field.value.has_value()) return Error(place, "missing, expected a list");
    if (!field.value->is_sequence()) return Error(place, absl::StrCat(field.value->Describe(), ", expected a list"));
    return Charge(field.value->size());
  }

  absl::Status Want(const Field& field, Place place, uint64_t least, uint64_t& value) const {
    const auto at = [&] { return absl::StrCat(place(), ".", field.key); };
    const std::string expected = absl::StrCat(", expected a whole number of at least ", least);
    if (!field.value.has_value()) return Error(at, absl::StrCat("missing", expected));
    const std::optional<uint64_t> number = field.value->AsUint64();
    if (!number.has_value() || *number < least) return Error(at, absl::StrCat(field.value->Describe(), expected));
    value = *number;
    return absl::OkStatus();
  }

  absl::Status Want(const Field& field, Place place, absl::string_view& text) const {
    const auto at = [&] { return absl::StrCat(place(), ".", field.key); };
    if (!field.value.has_value()) return Error(at, "missing, expected a string");
    const std::optional<absl::string_view> found = field.value->AsString();
    if (!found.has_value()) return Error(at, absl::StrCat(field.value->Describe(), ", expected a string"));
    text = *found;
    return absl::OkStatus();
  }

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
        return Error([=] { return absl::StrCat("device_traces[", index, "]"); },
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
    absl::Status status = Charge(events_->size());
    size_t index = 0;
    for (PickleCursor items(*events_); status.ok() && items.HasNext(); ++index) {
      const auto place = [&] { return absl::StrCat("device_traces[", device_, "][", index, "]"); };
      status = ReadEvent(items.Next(), place);
    }
    return status;
  }

  absl::Status ReadEvent(PickleValue entry, Place place) {
    Field fields[] = {{"action"}, {"addr"}, {"size"}, {"stream"}};
    const auto& [action, addr, size, stream] = fields;
    absl::Status status = ReadDict(entry, place, fields);
    absl::string_view name;
    status.Update(status.ok() ? Want(action, place, name) : status);
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
    status = Want(size, place, 1, bytes);
    event.size = Bytes(bytes);
    if (event.kind != HistoryEvent::Kind::kOutOfMemory) {
      uint64_t address = 0;
      status.Update(Want(addr, place, 1, address));
      status.Update(Want(stream, place, 0, event.stream));
      event.address = DeviceAddress(address);
    }
    if (status.ok()) history_.events.push_back(event);
    return status;
  }

  absl::Status ReadSegments(const Field& segments) {
    absl::Status status = WantList(segments, [] { return std::string("segments"); });
    if (!status.ok()) return status;
    history_.knows_live_at_end = true;
    size_t index = 0;
    for (PickleCursor items(*segments.value); status.ok() && items.HasNext(); ++index) {
      status = ReadSegment(items.Next(), [&] { return absl::StrCat("segments[", index, "]"); });
    }
    return status;
  }

  absl::Status ReadSegment(PickleValue segment, Place place) {
    Field fields[] = {{"device"}, {"address"}, {"stream"}, {"blocks"}};
    const auto& [device, address, stream, blocks] = fields;
    absl::Status status = ReadDict(segment, place, fields);
    uint64_t segment_device = 0;
    if (status.ok() && device.value.has_value()) status = Want(device, place, 0, segment_device);
    if (!status.ok() || segment_device != device_) return status;

    HistoryBlock block;
    uint64_t next_address = 0;
    status = Want(address, place, 1, next_address);
    status.Update(Want(stream, place, 0, block.stream));
    if (status.ok()) status = WantList(blocks, [&] { return absl::StrCat(place(), ".blocks"); });
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
  absl::Status ReadBlock(PickleValue value, Place place, uint64_t stream, uint64_t& address) {
    Field fields[] = {{"address"}, {"size"}, {"requested_size"}, {"state"}, {"history"}};
    const auto& [own_address, size, requested_size, state, history] = fields;
    absl::Status status = ReadDict(value, place, fields);
    uint64_t bytes = 0;
    absl::string_view name;
    if (status.ok()) status = Want(size, place, 1, bytes);
    if (status.ok() && own_address.value.has_value()) status = Want(own_address, place, 1, address);
    if (status.ok()) status = Want(state, place, name);
    if (!status.ok()) return status;

    const DeviceAddress begin(address);
    address += bytes;
    if (name != "active_allocated" && name != "active_pending_free" && name != "active_awaiting_free") {
      if (name != "inactive") unknown_states_.Add(*state.value);
      return status;
    }
    if (requested_size.value.has_value()) {
      status = Want(requested_size, place, 1, bytes);
    } else if (history.value.has_value()) {
      status = ReadOldHistory(history, place, bytes);
    } else {
      ++rounded_blocks_;
    }
    history_.live_at_end.push_back({begin, Bytes(bytes), stream});
    return status;
  }

  // Before PyTorch 2.1 the size asked for is in the block's list of past uses, the latest first.
  absl::Status ReadOldHistory(const Field& history, Place place, uint64_t& bytes) {
    const absl::Status status = WantList(history, [&] { return absl::StrCat(place(), ".history"); });
    if (!status.ok()) return status;
    PickleCursor uses(*history.value);
    if (!uses.HasNext()) {
      ++rounded_blocks_;
      return status;
    }
    const auto at = [&] { return absl::StrCat(place(), ".history[0]"); };
    Field fields[] = {{"real_size"}};
    const absl::Status read = ReadDict(uses.Next(), at, fields);
    return read.ok() ? Want(fields[0], at, 1, bytes) : read;
  }

  void Warn(bool has_segments) {
    unknown_keys_.Warn(name_, "keys", warnings_);
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

  uint64_t budget_;
  const absl::string_view name_;
  std::vector<std::string>& warnings_;
  std::optional<PickleValue> events_;
  uint32_t device_ = 0;
  MemoryHistory history_;
  UnknownNames unknown_keys_;
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

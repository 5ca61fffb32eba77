#include "core/recorder.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/utf8.h"

namespace expanse {
namespace {

using Kind = RecordedEvent::Kind;

bool IsLabelCharacter(char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7f' && c != ',' && c != '#'; }

bool EndsBlock(const RecordedEvent& event) { return event.kind == Kind::kFree || event.kind == Kind::kFreePending; }

// Those that were live before the first event, in order of address.
std::vector<RecordedBlock> Prologue(const Recorder& recorder, absl::Span<const RecordedBlock> live) {
  std::vector<RecordedBlock> prologue;
  absl::flat_hash_set<uint64_t> allocated;  // addresses of live blocks that the ring allocated
  for (uint64_t number = recorder.first(); number < recorder.end(); ++number) {
    const RecordedEvent& event = recorder.event(number);
    if (event.kind == Kind::kAllocate) allocated.insert(event.address);
    if (EndsBlock(event) && allocated.erase(event.address) == 0) {
      prologue.push_back(RecordedBlock{DeviceAddress(event.address), event.bytes, event.stream});
    }
  }
  for (const RecordedBlock& block : live) {
    if (!allocated.contains(block.address.value())) prologue.push_back(block);
  }
  std::sort(prologue.begin(), prologue.end(),
            [](const RecordedBlock& a, const RecordedBlock& b) { return a.address < b.address; });
  return prologue;
}

}  // namespace

absl::Status Recorder::Mark(std::string_view label) {
  if (!on()) return absl::FailedPreconditionError("nothing is recorded: record_events is 0");
  const bool written = !label.empty() && label.size() <= kLongestLabel && label.front() != ' ' && label.back() != ' ' &&
                       std::all_of(label.begin(), label.end(), IsLabelCharacter) && IsUtf8(label);
  if (!written) {
    return absl::InvalidArgumentError(absl::StrCat(
        "label '", absl::CHexEscape(std::string(label.substr(0, 80))), "' of ", label.size(), " bytes, expected 1 to ",
        kLongestLabel, " of UTF-8 without comma, '#', control characters and outer blanks"));
  }
  RecordedEvent mark;
  mark.kind = Kind::kMark;
  mark.address = labels_dropped_ + labels_.size();
  labels_.emplace_back(label);
  Push(mark);
  return absl::OkStatus();
}

void Recorder::NoteTime() {
  // The clock may be set back; times do not go back with it.
  const uint64_t group = end_ / kEventsPerTime;
  auto now = std::chrono::system_clock::now();
  if (group > 0) now = std::max(now, times_[(group - 1) % times_.size()]);
  times_[group % times_.size()] = now;
}

void Recorder::DropLabel() {
  labels_.pop_front();
  ++labels_dropped_;
}

absl::Status Recorder::CheckInvariants() const {
  uint64_t marks = 0;
  for (uint64_t number = first(); number < end(); ++number) {
    if (event(number).kind == Kind::kMark && event(number).address != labels_dropped_ + marks++) {
      return absl::InternalError(absl::StrCat("recorder: event ", number, " is mark ", event(number).address,
                                              ", expected mark ", labels_dropped_ + marks - 1));
    }
    if (number > first() && time(number) < time(number - 1)) {
      return absl::InternalError(absl::StrCat("recorder: time goes back at event ", number));
    }
  }
  if (marks != labels_.size() || (on() && next_ != end_ % events_.size())) {
    return absl::InternalError(absl::StrCat("recorder: ", labels_.size(), " labels for ", marks, " marks"));
  }
  return absl::OkStatus();
}

std::string FormatRecording(const Recorder& recorder, absl::Span<const RecordedBlock> live) {
  std::string text = "op,id,bytes,stream\n";
  absl::flat_hash_map<uint64_t, uint64_t> ids;  // by address, of the latest block there
  uint64_t next_id = 0;
  const auto allocate = [&](uint64_t address, Bytes bytes, uint32_t stream) {
    ids[address] = next_id;
    absl::StrAppend(&text, "a,", next_id++, ",", bytes.count(), ",", stream, "\n");
  };
  const std::vector<RecordedBlock> prologue = Prologue(recorder, live);
  for (const RecordedBlock& block : prologue) allocate(block.address.value(), block.bytes, block.stream);
  if (!prologue.empty()) absl::StrAppend(&text, "m,prologue_end,,\n");

  for (uint64_t number = recorder.first(); number < recorder.end(); ++number) {
    const RecordedEvent& event = recorder.event(number);
    switch (event.kind) {
      case Kind::kAllocate:
        allocate(event.address, event.bytes, event.stream);
        break;
      case Kind::kFree:
      case Kind::kFreePending:
        absl::StrAppend(&text, "f,", ids[event.address], ",,", event.other, "\n");
        break;
      case Kind::kUse:
        absl::StrAppend(&text, "u,", ids[event.address], ",,", event.other, "\n");
        break;
      case Kind::kMark:
        absl::StrAppend(&text, "m,", recorder.label(event), ",,\n");
        break;
      case Kind::kOutOfMemory:
        absl::StrAppend(&text, "m,oom_", event.bytes.count(), ",,\n");
        break;
      case Kind::kSettle:
      case Kind::kMap:
      case Kind::kUnmap:
        break;
    }
  }
  return text;
}

}  // namespace expanse

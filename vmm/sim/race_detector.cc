#include "vmm/sim/race_detector.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace expanse::sim {
namespace {

// Below this many intervals sweeping is not worth its while.
constexpr size_t kSmallHistory = 64;

}  // namespace

std::string WorkRef::ToString() const {
  return absl::StrCat("work ", number, " (", what, ") on stream ", static_cast<uint64_t>(stream));
}

std::string Race::ToString() const {
  return absl::StrCat(earlier.ToString(), earlier_writes ? " writes" : " reads", " and ", later.ToString(),
                      later_writes ? " writes" : " reads", " bytes [", bytes.offset.count(), ", ",
                      (bytes.offset + bytes.size).count(), ") of allocation ", static_cast<uint64_t>(bytes.allocation),
                      ", and nothing orders them");
}

void RaceDetector::Touch(const PhysicalExtent& extent, bool writes, const WorkRef& work, Epoch epoch,
                         const VectorClock& before, std::vector<Race>& races) {
  IntervalMap<History>& history = histories_[extent.allocation];
  const size_t intervals_before = history.size();
  // A piece of work that reaches the same bytes twice does not race with itself.
  const auto ordered = [&](const Touching& earlier) { return earlier.epoch == epoch || before.Covers(earlier.epoch); };
  const auto report = [&](const Touching& earlier, bool earlier_writes, uint64_t begin, uint64_t end) {
    const bool known =
        std::any_of(races.begin(), races.end(), [&](const Race& r) { return r.earlier == earlier.work; });
    if (known) return;
    races.push_back(
        Race{earlier.work, earlier_writes, work, writes, {extent.allocation, Bytes(begin), Bytes(end - begin)}});
  };

  history.Update(
      extent.offset.count(), (extent.offset + extent.size).count(), [&](uint64_t begin, uint64_t end, History& piece) {
        if (piece.written && !ordered(piece.write)) report(piece.write, /*earlier_writes=*/true, begin, end);
        if (writes) {
          for (const Touching& read : piece.reads) {
            if (!ordered(read)) report(read, /*earlier_writes=*/false, begin, end);
          }
          piece.written = true;
          piece.write = Touching{epoch, work};
          piece.reads.clear();
          return;
        }
        if (piece.written && piece.write.epoch == epoch) return;  // The write says all that the read would.
        piece.reads.erase(std::remove_if(piece.reads.begin(), piece.reads.end(), ordered), piece.reads.end());
        piece.reads.push_back(Touching{epoch, work});
      });
  size_ += history.size() - intervals_before;
}

void RaceDetector::Sweep(const VectorClock& host_knows) {
  if (size_ < sweep_at_) return;
  const auto known = [&](const Touching& touching) { return host_knows.Covers(touching.epoch); };
  const auto dead = [&](const History& piece) {
    return (!piece.written || known(piece.write)) && std::all_of(piece.reads.begin(), piece.reads.end(), known);
  };
  size_ = 0;
  for (auto it = histories_.begin(); it != histories_.end();) {
    it->second.EraseIf(dead);
    size_ += it->second.size();
    if (it->second.empty()) {
      histories_.erase(it++);
    } else {
      ++it;
    }
  }
  sweep_at_ = std::max(kSmallHistory, 2 * size_);
}

void RaceDetector::Forget(AllocationId allocation) {
  const auto it = histories_.find(allocation);
  if (it == histories_.end()) return;
  size_ -= it->second.size();
  histories_.erase(it);
}

absl::Status RaceDetector::CheckInvariants() const {
  size_t total = 0;
  for (const auto& [allocation, history] : histories_) {
    total += history.size();
    if (absl::Status intervals = history.CheckInvariants(); !intervals.ok()) return intervals;
    absl::Status status;
    history.ForEach(0, UINT64_MAX, [&, id = allocation](uint64_t begin, uint64_t /*end*/, const History& piece) {
      for (size_t i = 0; i < piece.reads.size(); ++i) {
        for (size_t j = i + 1; j < piece.reads.size(); ++j) {
          if (piece.reads[i].epoch.slot == piece.reads[j].epoch.slot) {
            status =
                absl::InternalError(absl::StrCat("race history of allocation ", static_cast<uint64_t>(id), " at byte ",
                                                 begin, " holds two reads by clock slot ", piece.reads[i].epoch.slot));
          }
        }
      }
      if (!piece.written && piece.reads.empty()) {
        status = absl::InternalError(absl::StrCat("race history of allocation ", static_cast<uint64_t>(id), " at byte ",
                                                  begin, " holds neither a write nor a read"));
      }
      return status.ok();
    });
    if (!status.ok()) return status;
  }
  if (total != size_) {
    return absl::InternalError(absl::StrCat("race history counts ", size_, " intervals and holds ", total));
  }
  return absl::OkStatus();
}

}  // namespace expanse::sim

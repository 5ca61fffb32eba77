#include "core/age_log.h"

#include "absl/strings/str_cat.h"

namespace expanse {

bool AgeLog::Note(Time now, uint64_t frees, Bytes spare) {
  const Time longest = std::max(age_ / 8, Time(1));
  const bool begins = spans_.empty() || now - spans_.back().begin >= longest;
  if (begins) {
    spans_.push_back(Span{now, now, frees, spare});
  } else {
    spans_.back().end = std::max(spans_.back().end, now);
    spans_.back().frees = frees;
    NoteSpare(spare);
  }
  while (spans_.size() > 1 && IsOld(spans_[1])) spans_.pop_front();
  return begins;
}

AgeLog::Old AgeLog::Find() const {
  if (spans_.empty() || !IsOld(spans_.front())) return Old();
  Old old{spans_.front().frees, spans_.front().least_spare};
  for (const Span& span : spans_) old.spare = std::min(old.spare, span.least_spare);
  return old;
}

absl::Status AgeLog::CheckInvariants() const {
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Span& span = spans_[i];
    if (span.end < span.begin || span.end - span.begin > age_ / 8) {
      return absl::InternalError(
          absl::StrCat("age log: span ", i, " is ", (span.end - span.begin).count(), " ns long"));
    }
    if (i == 0) continue;
    if (span.begin < spans_[i - 1].end || span.frees < spans_[i - 1].frees) {
      return absl::InternalError(absl::StrCat("age log: span ", i, " is before the one before it"));
    }
    if (IsOld(span)) return absl::InternalError(absl::StrCat("age log: span ", i, " is old"));
  }
  return absl::OkStatus();
}

}  // namespace expanse

// The scenario of memory that is created ahead, trimmed with and without waiting, and given back when it is old.

#include <utility>

#include "gtest/gtest.h"
#include "tests/faults/scenario.h"

namespace expanse::faults {

void Scenario::Prewarm(Bytes target, PrewarmMode mode) {
  Step("prewarm", absl::StatusCode::kOk, [&] {
    absl::Status status = allocator_->Prewarm(target, mode);
    // Meanwhile this thread makes no driver call, so that calls have numbers.
    if (status.ok()) status = allocator_->WaitForPrewarm();
    return status;
  });
}

void Scenario::TrimWaiting(Bytes target) {
  Step("trim, waiting", absl::StatusCode::kOk, [&] { return allocator_->Trim(target, TrimMode::kWait).status(); });
}

void Scenario::TrimUnused() {
  Step("trim what is unused", absl::StatusCode::kOk, [&] { return allocator_->TrimUnused().status(); });
}

void Scenario::RunGiveBack() {
  Prewarm(MiB(24), PrewarmMode::kBlocking);
  Prewarm(MiB(48), PrewarmMode::kBackground);
  Allocate('a', MiB(30), 0);
  Allocate('b', MiB(16), 1);
  Work('a', 0, true);
  Work('b', 1, true);
  Free('b');
  // First what is mapped nowhere, then what must be waited for.
  TrimWaiting(MiB(32));
  Allocate('c', MiB(20), 2);
  RecordUse('c', 1);
  Work('c', 1, false);
  Free('c');
  Trim(MiB(40));
  TrimWaiting(MiB(30));
  Work('a', 0, true);
  Free('a');
  TrimWaiting(Bytes());
  // Growth that moves, and a request that nothing helps.
  Allocate('d', MiB(40), 0);
  Free('d');
  Allocate('e', MiB(90), 1);
  AllocateInVain(MiB(97), 2);
  // Memory that is old by the time of a call of its own, and of requests and frees.
  Work('e', 1, true);
  Free('e');
  clock_ += std::chrono::seconds(9);
  TrimUnused();
  DestroyStream(1);
  clock_ += std::chrono::seconds(9);
  TrimUnused();
  Prewarm(MiB(60), PrewarmMode::kBackground);
  Allocate('f', MiB(50), 2);
  Allocate('g', MiB(12), 0);
  Free('f');
  clock_ += std::chrono::seconds(9);
  Allocate('h', MiB(4), 2);
  clock_ += std::chrono::seconds(9);
  Free('h');
  Free('g');
  Prewarm(MiB(96), PrewarmMode::kBlocking);
  Allocate('i', MiB(94), 0);
  Free('i');
  for (int i = 0; i < 2; ++i) {
    clock_ += std::chrono::seconds(9);
    TrimUnused();
  }
}

}  // namespace expanse::faults

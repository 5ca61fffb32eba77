// The scenario in which requests climb every rung of the out-of-memory ladder.

#include <utility>

#include "gtest/gtest.h"
#include "tests/faults/scenario.h"

namespace expanse::faults {

// Another allocator of the process whose calls of the driver count, and may fail, from here on.
void Scenario::CreatePeer(Bytes idle) {
  if (::testing::Test::HasFailure()) return;
  counting_ = false;
  auto peer = Allocator::Create(hooked_->driver(), {});
  ASSERT_TRUE(peer.ok()) << peer.status();
  peer_ = *std::move(peer);
  const absl::StatusOr<DeviceAddress> block = peer_->Allocate(idle, StreamHandle());
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(peer_->Free(*block), absl::OkStatus());
  counting_ = true;
}

void Scenario::DestroyPeer() {
  if (peer_ == nullptr) return;
  counting_ = false;
  EXPECT_EQ(peer_->CheckInvariants(), absl::OkStatus());
  lost_by_peer_ = peer_->GetStats().chunks_quarantined;
  peer_.reset();
  counting_ = true;
}

// From here on requests that starve may have this block.
void Scenario::OfferHostage(char name) { hostage_ = name; }

void Scenario::AddCallback() {
  Step("add a callback", absl::StatusCode::kOk, [&] {
    return allocator_
        ->AddOutOfMemoryCallback([this](const Shortage&) {
          const auto it = hostage_ ? live_.find(*std::exchange(hostage_, std::nullopt)) : live_.end();
          if (it == live_.end()) return false;
          EXPECT_EQ(allocator_->Free(it->second.begin), absl::OkStatus());
          live_.erase(it);
          return true;
        })
        .status();
  });
}

void Scenario::RunLadder() {
  CreatePeer(MiB(56));
  AddCallback();
  Allocate('a', MiB(20), 0);
  Allocate('b', MiB(12), 1);
  Allocate('c', MiB(10), 2);
  // What another stream has finished with is collected; what is missing then is created.
  RecordUse('a', 1);
  Work('a', 1, false);
  Free('a');
  sim_->Advance(std::chrono::microseconds(200));
  Allocate('d', MiB(24), 0);
  Allocate('e', MiB(9), 1);
  // The peer has what the device has not, which may have to be synchronised before it gives it.
  Allocate('f', MiB(30), 2);
  Allocate('g', MiB(10), 0);
  // At the limit a block of the other size class serves, where there is one.
  Allocate('s', KiB(700), 1);
  AllocateInVain(MiB(97), 0);
  OfferHostage('c');
  Allocate('h', MiB(8), 0);
  // Work that must be waited for.
  Work('f', 2, true);
  Free('f');
  Allocate('i', MiB(28), 1);
  Work('i', 1, true);
  Free('i');
  Allocate('j', MiB(26), 0);
  Work('j', 0, true);
  Free('j');
  Allocate('k', MiB(24), 2);
  Free('k');
  Free('h');
  Trim(MiB(60));
  Allocate('l', MiB(30), 1);
  for (const char name : {'b', 'd', 'e', 'g', 's', 'l'}) Free(name);
}

}  // namespace expanse::faults

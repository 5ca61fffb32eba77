// Random programs on a driver that refuses at random, several calls of one operation among them, so that undoing fails
// too: whatever is refused, the books stay right, live and pinned memory stays where it is, and what was not lost to
// the driver can be had again in the end.

#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;

class RandomFaults : public AllocatorTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint64_t kStreams = 3;
  static constexpr uint64_t kMostPools = 5;

  void Begin() {
    random_.seed(GetParam());
    constexpr Growth kGrowths[] = {Growth::kLazy, Growth::kBalanced, Growth::kFrugal};
    AllocatorOptions options;
    options.growth = kGrowths[GetParam() % 3];
    options.trim_after = microseconds(4000);
    options.clock = [this] { return sim_->now(); };
    Start(SmallDevice(), options);
    for (uint64_t i = 0; i < kStreams; ++i) NewStream();
    MappingCallbacks callbacks;
    callbacks.before_unmap = [this](AddressRange range) {
      for (const auto& [address, block] : live_) {
        EXPECT_FALSE((AddressRange{address, block.size}).Overlaps(range)) << "unmaps a live block";
      }
      for (const AddressRange pin : pins_) EXPECT_FALSE(pin.Overlaps(range)) << "unmaps what is pinned";
      return Pick(8) != 0;
    };
    callbacks_ = allocator_->AddMappingCallbacks(callbacks).value();
  }

  void Step() {
    const uint64_t choice = Pick(100);
    if (choice < 45 || live_.empty()) {
      DoAllocate();
    } else if (choice < 75) {
      DoFree();
    } else if (choice < 79) {
      Fail();
      Note(allocator_->Trim(MiB(Pick(64)), Pick(2) == 0 ? TrimMode::kNoWait : TrimMode::kWait).status());
    } else if (choice < 80) {
      Fail();
      Note(allocator_->TrimUnused().status());
    } else if (choice < 81) {
      Fail();
      const absl::Status status =
          allocator_->Prewarm(MiB(Pick(65)), Pick(2) == 0 ? PrewarmMode::kBlocking : PrewarmMode::kBackground);
      Note(status.ok() ? allocator_->WaitForPrewarm() : status);
    } else if (choice < 82) {
      // Another process takes memory, and gives it back.
      sim_->SetTakenByOthers(DeviceOrdinal(), MiB(Pick(2) * Pick(40)));
    } else if (choice < 84) {
      Fail();
      Note(allocator_->TrimPool(AnyPool(), MiB(Pick(32))).status());
    } else if (choice < 87) {
      ChangePools();
    } else if (choice < 93) {
      ChangePins();
    } else if (choice < 95) {
      Fail();
      Note(allocator_->SetLimit(Pick(2) == 0 ? std::optional<Bytes>(MiB(16 + Pick(48))) : std::nullopt));
    } else if (choice < 97) {
      ReplaceStream();
    } else {
      sim_->Advance(microseconds(Pick(3000)));
    }
    sim_->ClearFaults();
  }

  void CheckAll() {
    Check();
    ASSERT_EQ(sim_->hazard_count(), 0u) << sim_->hazards()[0].description;
    ASSERT_EQ(sim_->committed(DeviceOrdinal()), stats().reserved.current) << "what the driver gave is on the books";
    for (const auto& [address, block] : live_) ASSERT_TRUE(sim_->IsMapped({address, block.size}));
    for (const AddressRange pin : pins_) ASSERT_TRUE(sim_->IsMapped(pin));
  }

  void End() {
    EXPECT_EQ(allocator_->RemoveMappingCallbacks(callbacks_), absl::OkStatus());
    for (const AddressRange pin : pins_) EXPECT_EQ(allocator_->Unpin(pin.begin, pin.size), absl::OkStatus());
    for (const auto& [address, block] : live_) EXPECT_EQ(allocator_->Free(address), absl::OkStatus());
    EXPECT_EQ(allocator_->SetLimit(std::nullopt), absl::OkStatus());
    sim_->SetTakenByOthers(DeviceOrdinal(), Bytes());
    // Everything but what is quarantined, in one piece.
    Free(Alloc(MiB(64) - kChunk * stats().chunks_quarantined, streams_[0]));
    EXPECT_GT(stats().chunks_quarantined, 0u) << "no undoing failed";
    EXPECT_GT(served_, 100u);
    EXPECT_GT(refused_by_driver_, 10u);
  }

 private:
  struct LiveBlock {
    Bytes size;
    StreamHandle last;  // that was given work on it
  };

  uint64_t Pick(uint64_t n) { return random_() % n; }
  PoolId AnyPool() { return pools_[Pick(pools_.size())]; }
  StreamHandle AnyStream() { return streams_[Pick(streams_.size())]; }
  abi::Result AnyError() {
    constexpr abi::Result kErrors[] = {abi::kOutOfMemory, abi::kInvalidValue, abi::kUnknown};
    return kErrors[Pick(3)];
  }

  // Up to four of the next calls fail. Refusals to take back addresses are not among those of one kind: two in a row
  // lose them.
  void Fail() {
    using E = EntryPoint;
    constexpr E kEntryPoints[] = {E::mem_unmap,         E::mem_map,         E::mem_set_access, E::mem_create,
                                  E::mem_release,       E::event_record,    E::event_query,    E::event_create,
                                  E::event_synchronize, E::ctx_synchronize, E::event_destroy,  E::mem_address_reserve};
    for (uint64_t faults = Pick(4); faults > 0; --faults) {
      sim_->FailNthCall(kEntryPoints[Pick(std::size(kEntryPoints))], 1 + Pick(3), AnyError());
    }
    if (Pick(3) == 0) sim_->FailNthCallOfAny(1 + Pick(12), AnyError());
  }

  void Note(const absl::Status& status) {
    if (!status.ok() && !absl::IsResourceExhausted(status)) ++refused_by_driver_;
  }

  void DoAllocate() {
    const Bytes size(1 + Pick(Pick(2) == 0 ? KiB(400).count() : MiB(12).count()));
    const StreamHandle stream = AnyStream();
    Fail();
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream, AnyPool());
    sim_->ClearFaults();
    Note(address.status());
    if (!address.ok()) return;
    ++served_;
    ASSERT_TRUE(live_.emplace(*address, LiveBlock{size, stream}).second);
    Launch(stream, microseconds(Pick(600)), *address, size);
  }

  void DoFree() {
    const auto it = std::next(live_.begin(), static_cast<std::ptrdiff_t>(Pick(live_.size())));
    const auto [address, block] = *it;
    live_.erase(it);
    std::optional<StreamHandle> last;
    if (Pick(3) == 0) {
      last = AnyStream();
      OrderAfter(*last, block.last);
      Launch(*last, microseconds(Pick(900)), address, block.size);
    }
    Fail();
    // The block is freed whatever the driver says: there is nothing that the caller could do.
    Note(last ? allocator_->Free(address, *last) : allocator_->Free(address));
    EXPECT_TRUE(absl::IsInvalidArgument(allocator_->Free(address)));
  }

  void ChangePools() {
    Fail();
    if (pools_.size() < kMostPools && Pick(2) == 0) {
      PoolOptions options;
      options.deterministic = Pick(2) == 0;
      if (Pick(2) == 0) options.limit = MiB(4 + Pick(30));
      const absl::StatusOr<PoolId> pool = allocator_->CreatePool(options);
      Note(pool.status());
      if (pool.ok()) pools_.push_back(*pool);
    } else if (pools_.size() > 1) {
      std::swap(pools_[1 + Pick(pools_.size() - 1)], pools_.back());
      EXPECT_EQ(allocator_->RetirePool(pools_.back()), absl::OkStatus());
      pools_.pop_back();
    }
  }

  void ChangePins() {
    Fail();
    if (Pick(2) == 0) {
      const auto it = std::next(live_.begin(), static_cast<std::ptrdiff_t>(Pick(live_.size())));
      pins_.push_back({it->first, it->second.size});
      EXPECT_EQ(allocator_->Pin(it->first, it->second.size), absl::OkStatus());
    } else if (!pins_.empty()) {
      const AddressRange pin = pins_.back();
      pins_.pop_back();
      EXPECT_EQ(allocator_->Unpin(pin.begin, pin.size), absl::OkStatus());
    }
  }

  void ReplaceStream() {
    const StreamHandle old = AnyStream();
    const StreamHandle heir = streams_[0] == old ? streams_[1] : streams_[0];
    OrderAfter(heir, old);
    for (auto& [address, block] : live_) {
      if (block.last == old) block.last = heir;
    }
    Fail();
    Note(allocator_->OnStreamDestroyed(old));
    sim_->ClearFaults();
    DestroyStream(old);
    NewStream();
  }

  std::mt19937 random_;
  std::vector<PoolId> pools_ = {PoolId()};
  std::map<DeviceAddress, LiveBlock> live_;
  std::vector<AddressRange> pins_;
  MappingCallbacksId callbacks_;
  uint64_t served_ = 0;
  uint64_t refused_by_driver_ = 0;
};

TEST_P(RandomFaults, LoseNothingButWhatTheDriverKeeps) {
  Begin();
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    SCOPED_TRACE(::testing::Message() << "seed " << GetParam() << ", operation " << i);
    Step();
    CheckAll();
  }
  if (!HasFailure()) End();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFaults, ::testing::Range(0u, 9u));

}  // namespace
}  // namespace expanse

// Long random programs of several tenants on a small device: pools with and without limits, deterministic ones, pools
// that come and go, pins, and callbacks that veto; compared with a simple model.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;

class RandomTenants : public AllocatorTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr Bytes kLimit = MiB(24);

  void Begin() {
    random_.seed(GetParam());
    sim::Config config = SmallDevice();
    config.devices[0].total_memory = MiB(128);
    AllocatorOptions options;
    options.growth = GetParam() % 3 == 0 ? Growth::kLazy : GetParam() % 3 == 1 ? Growth::kFrugal : Growth::kBalanced;
    options.trim_after = microseconds(20'000);
    options.clock = [this] { return sim_->now(); };
    Start(config, options);
    NewStream();
    NewStream();
    NewStream();
    for (int i = 0; i < 4; ++i) NewTenant();
    MappingCallbacks callbacks;
    callbacks.before_unmap = [this](AddressRange range) {
      for (const Pinned& pin : pins_) EXPECT_FALSE(pin.range.Overlaps(range)) << "unmaps what is pinned";
      for (const auto& [address, block] : live_) {
        EXPECT_FALSE((AddressRange{address, block.size}).Overlaps(range)) << "unmaps a live block";
      }
      const bool veto = Pick(10) == 0;
      vetoes_ += veto ? 1 : 0;
      return !veto;
    };
    callbacks_ = allocator_->AddMappingCallbacks(callbacks).value();
  }

  void Step() {
    const uint64_t choice = Pick(100);
    if (choice < 42 || live_.empty()) {
      DoAllocate();
    } else if (choice < 75) {
      DoFree();
    } else if (choice < 80) {
      sim_->Advance(microseconds(Pick(1500)));
    } else if (choice < 86) {
      const auto it = AnyLive();
      const Bytes offset(Pick(it->second.size.count()));
      pins_.push_back(Pinned{{it->first + offset, Bytes(1 + Pick((it->second.size - offset).count()))}});
      ASSERT_EQ(allocator_->Pin(pins_.back().range.begin, pins_.back().range.size), absl::OkStatus());
      CheckHandles(pins_.back().range);
    } else if (choice < 92) {
      if (pins_.empty()) return;
      const size_t index = Pick(pins_.size());
      const AddressRange range = pins_[index].range;
      pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(index));
      ASSERT_EQ(allocator_->Unpin(range.begin, range.size), absl::OkStatus());
    } else if (choice < 95) {
      ASSERT_TRUE(allocator_->TrimPool(AnyTenant(), Bytes(Pick(MiB(32).count()))).ok());
    } else if (choice < 96) {
      const TrimMode mode = Pick(2) == 0 ? TrimMode::kNoWait : TrimMode::kWait;
      ASSERT_TRUE(allocator_->Trim(Bytes(Pick(MiB(128).count())), mode).ok());
    } else if (choice < 97) {
      ASSERT_TRUE(allocator_->TrimUnused().ok());
      const absl::Status status = allocator_->Prewarm(Bytes(Pick(MiB(128).count())));
      ASSERT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
    } else if (choice < 99) {
      const size_t index = Pick(tenants_.size());
      ASSERT_EQ(allocator_->RetirePool(tenants_[index].id), absl::OkStatus());
      ASSERT_TRUE(absl::IsFailedPrecondition(allocator_->RetirePool(tenants_[index].id)));
      tenants_.erase(tenants_.begin() + static_cast<std::ptrdiff_t>(index));
      NewTenant();
    } else {
      ReplaceStream();
    }
  }

  void CheckModel() {
    Check();
    ASSERT_EQ(sim_->hazard_count(), 0u) << sim_->hazards()[0].description;
    ASSERT_EQ(stats().live_blocks, live_.size());
    std::set<DeviceAddress> pinned;
    for (const Pinned& pin : pins_) {
      ASSERT_TRUE(sim_->IsMapped(pin.range)) << "pinned at " << pin.range.begin;
      const uint64_t last = (pin.range.end().value() - 1) / kChunk.count();
      for (uint64_t chunk = pin.range.begin.value() / kChunk.count(); chunk <= last; ++chunk) {
        pinned.insert(DeviceAddress(chunk * kChunk.count()));
      }
    }
    ASSERT_EQ(stats().pinned.current, kChunk * pinned.size());
    for (const Tenant& tenant : tenants_) {
      const PoolStats of_pool = allocator_->GetPoolStats(tenant.id).value();
      ASSERT_TRUE(!tenant.limited || of_pool.reserved.current <= kLimit) << of_pool.reserved.current;
      Bytes expected;
      for (const auto& [address, block] : live_) expected += block.pool == tenant.id ? block.size : Bytes();
      ASSERT_EQ(of_pool.live.current, expected);
    }
  }

  // Everything can be had again in the end.
  void End() {
    while (!pins_.empty()) {
      const AddressRange range = pins_.back().range;
      pins_.pop_back();
      ASSERT_EQ(allocator_->Unpin(range.begin, range.size), absl::OkStatus());
    }
    while (!live_.empty()) DoFree();
    for (const Tenant& tenant : tenants_) ASSERT_EQ(allocator_->RetirePool(tenant.id), absl::OkStatus());
    ASSERT_EQ(allocator_->RemoveMappingCallbacks(callbacks_), absl::OkStatus());
    ASSERT_EQ(sim_->driver().ctx_synchronize(), abi::kSuccess);
    ASSERT_TRUE(allocator_->Trim(Bytes()).ok());
    Check();
    EXPECT_EQ(stats().reserved.current, Bytes());
    EXPECT_EQ(allocator_->TakeSnapshot().pools.size(), 1u) << "retired pools are forgotten";
    EXPECT_GT(served_, 300u);
    EXPECT_GT(refused_, 10u);
    EXPECT_GT(vetoes_, 10u);
    EXPECT_GT(stats().chunks_moved, 50u);
  }

 private:
  struct Tenant {
    PoolId id;
    bool limited = false;
  };
  struct LiveBlock {
    Bytes size;
    PoolId pool;
    StreamHandle last;  // that was given work on it
  };
  struct Pinned {
    AddressRange range;
  };

  uint64_t Pick(uint64_t n) { return random_() % n; }
  std::map<DeviceAddress, LiveBlock>::iterator AnyLive() {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(Pick(live_.size())));
  }
  PoolId AnyTenant() { return Pick(4) == 0 ? PoolId() : tenants_[Pick(tenants_.size())].id; }

  void NewTenant() {
    Tenant tenant;
    PoolOptions options;
    tenant.limited = Pick(2) == 0;
    if (tenant.limited) options.limit = kLimit;
    options.deterministic = Pick(3) == 0;
    const absl::StatusOr<PoolId> id = allocator_->CreatePool(options);
    ASSERT_TRUE(id.ok()) << id.status();
    tenant.id = *id;
    tenants_.push_back(tenant);
  }

  void DoAllocate() {
    const Bytes size(1 + Pick(Pick(2) == 0 ? KiB(300).count() : MiB(10).count()));
    const StreamHandle stream = streams_[Pick(streams_.size())];
    const PoolId pool = AnyTenant();
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream, pool);
    if (!address.ok()) {
      ASSERT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
      ++refused_;
      return;
    }
    ++served_;
    const AddressRange range{*address, size};
    ASSERT_TRUE(sim_->IsMapped(range));
    const auto next = live_.lower_bound(*address);
    ASSERT_TRUE(next == live_.end() || next->first >= range.end()) << "overlaps the next live block";
    ASSERT_TRUE(next == live_.begin() || std::prev(next)->first + std::prev(next)->second.size <= *address);
    Launch(stream, microseconds(Pick(400)), *address, size);
    live_.emplace(*address, LiveBlock{size, pool, stream});
  }

  void DoFree() {
    const auto it = AnyLive();
    const auto [address, block] = *it;
    live_.erase(it);
    if (Pick(3) != 0) {
      ASSERT_EQ(allocator_->Free(address), absl::OkStatus());
      return;
    }
    const StreamHandle last = streams_[Pick(streams_.size())];
    OrderAfter(last, block.last);
    Launch(last, microseconds(Pick(800)), address, block.size);
    ASSERT_EQ(allocator_->Free(address, last), absl::OkStatus());
  }

  void CheckHandles(AddressRange range) {
    const auto spans = allocator_->HandlesSpanning(range.begin, range.size);
    ASSERT_TRUE(spans.ok()) << spans.status();
    DeviceAddress at = range.begin;
    for (const HandleSpan& span : *spans) {
      ASSERT_EQ(span.range().begin, at);
      ASSERT_TRUE(span.chunk.Contains(span.range()));
      at = span.range().end();
    }
    ASSERT_EQ(at, range.end());
  }

  // Its blocks live on; their last work is ordered before what another stream does next.
  void ReplaceStream() {
    const StreamHandle old = streams_[Pick(streams_.size())];
    const StreamHandle heir = streams_[0] == old ? streams_[1] : streams_[0];
    OrderAfter(heir, old);
    for (auto& [address, block] : live_) {
      if (block.last == old) block.last = heir;
    }
    ASSERT_EQ(allocator_->OnStreamDestroyed(old), absl::OkStatus());
    DestroyStream(old);
    NewStream();
  }

  std::mt19937 random_;
  std::vector<Tenant> tenants_;
  std::map<DeviceAddress, LiveBlock> live_;
  std::vector<Pinned> pins_;
  MappingCallbacksId callbacks_;
  uint64_t served_ = 0;
  uint64_t refused_ = 0;
  uint64_t vetoes_ = 0;
};

TEST_P(RandomTenants, KeepTheirBooksAndTheirMemory) {
  Begin();
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    SCOPED_TRACE(::testing::Message() << "seed " << GetParam() << ", operation " << i);
    Step();
    CheckModel();
  }
  if (!HasFailure()) End();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTenants, ::testing::Range(0u, 9u));

}  // namespace
}  // namespace expanse

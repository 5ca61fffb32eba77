// What callbacks are told when memory is mapped and unmapped, and what their vetoes do.

#include <functional>
#include <set>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

// Keeps the set of mapped chunks as a program would that registers them.
class AllocatorMappingCallbacks : public AllocatorTest {
 protected:
  void Register() {
    MappingCallbacks callbacks;
    callbacks.before_unmap = [this](AddressRange range) {
      ++asked_;
      if (veto_ && veto_(range)) return false;
      for (DeviceAddress at = range.begin; at < range.end(); at += kChunk) {
        EXPECT_EQ(registered_.erase(at), 1u) << "unmapped what was not mapped: " << at;
      }
      return true;
    };
    callbacks.after_map = [this](AddressRange range) {
      EXPECT_TRUE(sim_->IsMapped(range));
      for (DeviceAddress at = range.begin; at < range.end(); at += kChunk) {
        EXPECT_TRUE(registered_.insert(at).second) << "mapped twice: " << at;
      }
    };
    id_ = allocator_->AddMappingCallbacks(callbacks).value();
  }
  void CheckRegistered() {
    EXPECT_EQ(kChunk * registered_.size(), allocator_->GetPoolStats(PoolId())->reserved.current);
    for (const DeviceAddress at : registered_) EXPECT_TRUE(sim_->IsMapped({at, kChunk})) << at;
  }

  std::set<DeviceAddress> registered_;
  std::function<bool(AddressRange)> veto_;
  uint64_t asked_ = 0;
  MappingCallbacksId id_;
};

TEST_F(AllocatorMappingCallbacks, TellOfGrowthMovesTrimsAndDestruction) {
  Start();
  Register();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(Alloc(MiB(4)));
  CheckRegistered();
  for (size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  const DeviceAddress large = Alloc(MiB(32));
  EXPECT_EQ(asked_, 16u);
  CheckRegistered();
  Free(large);
  ASSERT_TRUE(allocator_->Trim(MiB(40)).ok());
  CheckRegistered();
  EXPECT_FALSE(registered_.empty());
  allocator_.reset();
  EXPECT_TRUE(registered_.empty()) << "destruction tells too";
}

TEST_F(AllocatorMappingCallbacks, AVetoKeepsTheMappingAndAnotherChunkIsTaken) {
  Start();
  Register();
  const StreamHandle other = NewStream();
  const DeviceAddress a = Alloc(MiB(16));
  const DeviceAddress b = Alloc(MiB(16));
  Alloc(MiB(32));
  Free(a);
  Free(b);
  veto_ = [a](AddressRange range) { return AddressRange{a, MiB(8)}.Contains(range); };
  Alloc(MiB(8), other);
  CheckRegistered();
  EXPECT_TRUE(sim_->IsMapped({a, MiB(8)}));
  EXPECT_FALSE(sim_->IsMapped({a + MiB(8), kChunk}));
  EXPECT_TRUE(sim_->IsMapped({b, MiB(16)})) << "only as many others as were missing";
  EXPECT_EQ(asked_, 8u);
  Alloc(MiB(16), other);
  EXPECT_EQ(asked_, 16u) << "what was vetoed lately is asked last";
  EXPECT_TRUE(sim_->IsMapped({a, MiB(8)}));
  CheckRegistered();
}

TEST_F(AllocatorMappingCallbacks, VetoesOfEverythingEndInAClearError) {
  Start();
  Register();
  const StreamHandle other = NewStream();
  const DeviceAddress a = Alloc(MiB(64));
  Free(a);
  veto_ = [](AddressRange) { return true; };
  EXPECT_TRUE(absl::IsResourceExhausted(AllocFails(MiB(2), other)));
  EXPECT_GE(asked_, 32u) << "each idle chunk was asked for";
  EXPECT_LE(asked_, 200u);
  EXPECT_EQ(*allocator_->Trim(Bytes()), Bytes());
  Check();
  EXPECT_EQ(stats().reserved.current, MiB(64));
  CheckRegistered();
  EXPECT_EQ(Alloc(MiB(64)), a) << "where it is it can be used";
  Free(a);
  // Until the veto is gone.
  veto_ = nullptr;
  Alloc(MiB(64), other);
  CheckRegistered();
}

TEST_F(AllocatorMappingCallbacks, TrimTakesOthersInsteadOfVetoedChunks) {
  Start();
  Register();
  const DeviceAddress a = Alloc(MiB(16));
  Free(a);
  veto_ = [a](AddressRange range) { return (range.begin - a) / kChunk % 2 == 0; };
  EXPECT_EQ(*allocator_->Trim(MiB(10)), MiB(6));
  Check();
  CheckRegistered();
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(2));
  Check();
  EXPECT_EQ(stats().reserved.current, MiB(8));
}

TEST_F(AllocatorMappingCallbacks, ADriverThatWillNotUnmapIsMadeUpFor) {
  Start();
  Register();
  const DeviceAddress a = Alloc(MiB(16));
  Free(a);
  sim_->FailNthCall(EntryPoint::mem_unmap, 1, abi::kUnknown);
  EXPECT_FALSE(allocator_->Trim(Bytes()).ok());
  Check();
  CheckRegistered();
  EXPECT_EQ(registered_.size(), 8u);
}

TEST_F(AllocatorMappingCallbacks, AllThatLetGoAreToldWhenTheDriverStopsAtTheFirst) {
  Start();
  Register();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(Alloc(MiB(4)));
  for (size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    sim_->FailNthCall(EntryPoint::mem_unmap, nth, abi::kUnknown);
    EXPECT_FALSE(allocator_->Trim(Bytes()).ok());
    Check();
    CheckRegistered();
    EXPECT_EQ(registered_.size(), nth == 3 ? 26u : nth == 2 ? 30u : 32u) << "eight runs of two chunks";
  }
}

TEST_F(AllocatorMappingCallbacks, AVetoAtDestructionIsIgnored) {
  Start();
  Register();
  Alloc(MiB(8));
  veto_ = [](AddressRange) { return true; };
  allocator_.reset();
  EXPECT_EQ(asked_, 1u);
  EXPECT_EQ(sim_->ledger().physical_bytes, Bytes());
}

TEST_F(AllocatorMappingCallbacks, AreNotCalledOnceRemoved) {
  Start();
  Register();
  Alloc(MiB(4));
  EXPECT_EQ(allocator_->RemoveMappingCallbacks(id_), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(allocator_->RemoveMappingCallbacks(id_)));
  Alloc(MiB(4));
  EXPECT_EQ(registered_.size(), 2u);
  allocator_.reset();
  EXPECT_EQ(asked_, 0u);
}

// Where the driver will not say that work is over, all memory stays as it is, and the program's callbacks may be gone.
TEST(AbandonedAllocator, IsNeitherAskedForMemoryNorCallsAnybody) {
  sim::Config config;
  config.devices[0].total_memory = MiB(64);
  config.memory = sim::MemoryMode::kAccounting;
  const std::unique_ptr<sim::Simulator> simulator = *sim::Simulator::Create(config);
  const Driver& driver = simulator->driver();
  ASSERT_EQ(driver.init(0), abi::kSuccess);
  std::unique_ptr<Allocator> abandoned = *Allocator::Create(driver, {});
  std::unique_ptr<Allocator> other = *Allocator::Create(driver, {});
  int calls = 0;
  MappingCallbacks callbacks;
  callbacks.before_unmap = [&calls](AddressRange) {
    ++calls;
    return true;
  };
  ASSERT_TRUE(abandoned->AddMappingCallbacks(callbacks).ok());
  const DeviceAddress block = *abandoned->Allocate(MiB(40), StreamHandle());
  ASSERT_EQ(abandoned->Free(block), absl::OkStatus());
  simulator->FailNthCall(EntryPoint::ctx_push_current, 1, abi::kUnknown);
  simulator->FailNthCall(EntryPoint::ctx_synchronize, 1, abi::kUnknown);
  abandoned.reset();
  simulator->ClearFaults();
  EXPECT_TRUE(absl::IsResourceExhausted(other->Allocate(MiB(40), StreamHandle()).status()));
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(simulator->IsMapped({block, MiB(40)}));
}

}  // namespace
}  // namespace expanse

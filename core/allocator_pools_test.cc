// Scenarios of tenants: private pools of one allocator, their limits, and what one leaves to the others.

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

PoolOptions Named(const std::string& name, std::optional<Bytes> limit) {
  PoolOptions options;
  options.name = name;
  options.limit = limit;
  return options;
}

class AllocatorPools : public AllocatorTest {
 protected:
  PoolId NewPool(const std::string& name, std::optional<Bytes> limit = std::nullopt) {
    const absl::StatusOr<PoolId> pool = allocator_->CreatePool(Named(name, limit));
    EXPECT_TRUE(pool.ok()) << pool.status();
    return pool.value_or(PoolId());
  }
  DeviceAddress AllocIn(PoolId pool, Bytes size, StreamHandle stream = StreamHandle()) {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream, pool);
    EXPECT_TRUE(address.ok()) << address.status();
    Check();
    return address.value_or(DeviceAddress());
  }
  absl::Status AllocInFails(PoolId pool, Bytes size, StreamHandle stream = StreamHandle()) {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream, pool);
    EXPECT_FALSE(address.ok());
    Check();
    return address.status();
  }
  PoolStats StatsOf(PoolId pool) { return allocator_->GetPoolStats(pool).value(); }
};

TEST_F(AllocatorPools, EachPoolCountsItsOwn) {
  Start();
  const PoolId a = NewPool("a");
  const PoolId b = NewPool("b");
  const DeviceAddress in_a = AllocIn(a, Bytes(1000));
  const DeviceAddress in_b = AllocIn(b, MiB(3));
  Alloc(MiB(1));
  EXPECT_EQ(StatsOf(a).live.current, Bytes(1000));
  EXPECT_EQ(StatsOf(a).allocated.current, Bytes(1024));
  EXPECT_EQ(StatsOf(a).reserved.current, kChunk);
  EXPECT_EQ(StatsOf(b).reserved.current, kChunk * 2);
  EXPECT_EQ(StatsOf(PoolId()).live.current, MiB(1));
  EXPECT_EQ(stats().live.current, Bytes(1000) + MiB(4));
  Free(in_b);
  Free(in_a);
  EXPECT_EQ(StatsOf(b).live.current, Bytes());
  EXPECT_EQ(StatsOf(b).live.peak, MiB(3));
  EXPECT_EQ(StatsOf(b).idle.current, kChunk * 2);
  allocator_->ResetPeaks();
  EXPECT_EQ(StatsOf(b).live.peak, Bytes());
}

TEST_F(AllocatorPools, FreeMemoryOfOnePoolIsNotHandedOutInAnother) {
  Start();
  const PoolId a = NewPool("a");
  const DeviceAddress first = AllocIn(a, KiB(64));
  AllocIn(a, KiB(64));
  Free(first);
  const DeviceAddress elsewhere = Alloc(KiB(64));
  EXPECT_NE(elsewhere, first);
  EXPECT_EQ(AllocIn(a, KiB(64)), first);
}

TEST_F(AllocatorPools, IdleChunksOfOnePoolServeAnother) {
  Start();
  const PoolId a = NewPool("a");
  const PoolId b = NewPool("b");
  const DeviceAddress block = AllocIn(a, MiB(48));
  Free(block);
  AllocIn(b, MiB(64));
  EXPECT_EQ(stats().chunks_created, 32u);
  EXPECT_EQ(stats().chunks_moved, 24u);
  EXPECT_EQ(StatsOf(a).reserved.current, Bytes());
  EXPECT_EQ(StatsOf(b).reserved.current, MiB(64));
}

TEST_F(AllocatorPools, APoolAtItsLimitLeavesTheOthersAlone) {
  Start();
  const PoolId small = NewPool("small", MiB(8));
  AllocIn(small, MiB(6));
  const absl::Status status = AllocInFails(small, MiB(3));
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("pool 1 (small): limit 8.00 MiB"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("would help: a higher limit of pool 1 (small)"));
  AllocIn(small, MiB(2));
  EXPECT_TRUE(absl::IsResourceExhausted(AllocInFails(small, Bytes(1))));
  EXPECT_EQ(StatsOf(small).reserved.current, MiB(8));
  Alloc(MiB(56));
  EXPECT_EQ(stats().failed_allocations, 2u);
}

TEST_F(AllocatorPools, AtItsLimitAPoolMovesItsOwnIdleChunks) {
  Start();
  const PoolId small = NewPool("small", MiB(16));
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(AllocIn(small, MiB(4)));
  Free(blocks[0]);
  Free(blocks[2]);
  const DeviceAddress other = Alloc(MiB(8));
  Free(other);  // idle memory of another pool, which the limit does not allow to use
  AllocIn(small, MiB(8));
  EXPECT_EQ(stats().chunks_moved, 4u);
  EXPECT_EQ(StatsOf(small).reserved.current, MiB(16));
  EXPECT_TRUE(sim_->IsMapped({other, MiB(8)}));
}

TEST_F(AllocatorPools, APoolAtItsLimitWaitsForItsOwnWorkAlone) {
  Start();
  const PoolId small = NewPool("small", MiB(8));
  const StreamHandle theirs = NewStream();
  const StreamHandle ours = NewStream();
  const StreamHandle third = NewStream();
  const DeviceAddress other = Alloc(MiB(8), theirs);
  Launch(theirs, microseconds(1000), other, MiB(8));
  Free(other);
  const DeviceAddress block = AllocIn(small, MiB(8), ours);
  Launch(ours, microseconds(100), block, MiB(8));
  Free(block);
  const sim::VirtualTime before = sim_->now();
  AllocIn(small, MiB(8), third);
  EXPECT_EQ(sim_->now() - before, microseconds(100));
  EXPECT_TRUE(absl::IsResourceExhausted(AllocInFails(small, MiB(1), ours)));
  EXPECT_EQ(sim_->now() - before, microseconds(100)) << "what will not help is not waited for";
}

TEST_F(AllocatorPools, TrimmingOnePoolLeavesTheOthersAlone) {
  Start();
  const PoolId a = NewPool("a");
  const PoolId b = NewPool("b");
  const DeviceAddress in_a = AllocIn(a, MiB(8));
  const DeviceAddress in_b = AllocIn(b, MiB(8));
  AllocIn(b, MiB(4));
  Free(in_a);
  Free(in_b);
  EXPECT_EQ(*allocator_->TrimPool(b, MiB(8)), MiB(4));
  Check();
  EXPECT_EQ(*allocator_->TrimPool(b, Bytes()), MiB(4));
  Check();
  EXPECT_EQ(StatsOf(b).reserved.current, MiB(4));
  EXPECT_EQ(StatsOf(a).reserved.current, MiB(8));
  EXPECT_EQ(stats().reserved.current, MiB(12));
}

TEST_F(AllocatorPools, ANameMustBeText) {
  Start();
  const absl::Status status = allocator_->CreatePool(Named("a\xff", std::nullopt)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("'a\\xff' is no UTF-8"));
}

TEST_F(AllocatorPools, UnknownAndRetiredPoolsAreRefused) {
  Start();
  EXPECT_TRUE(absl::IsNotFound(AllocInFails(PoolId(1), MiB(1))));
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_->CreatePool(Named("tiny", KiB(64))).status()));
  const PoolId a = NewPool("a");
  EXPECT_EQ(allocator_->RetirePool(a), absl::OkStatus());
  Check();
  const absl::Status refused[] = {AllocInFails(a, MiB(1)), allocator_->GetPoolStats(a).status(),
                                  allocator_->TrimPool(a, Bytes()).status(), allocator_->RetirePool(a)};
  for (const absl::Status& status : refused) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("pool 1"));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_->RetirePool(PoolId())));
}

TEST_F(AllocatorPools, BlocksOfARetiredPoolStayValidUntilTheyAreFreed) {
  Start(SmallRealDevice());
  const PoolId a = NewPool("a");
  const DeviceAddress kept = AllocIn(a, MiB(8));
  const DeviceAddress freed = AllocIn(a, MiB(8));
  std::memset(kept.ptr(), 0x5A, MiB(8).count());
  Free(freed);
  ASSERT_EQ(allocator_->RetirePool(a), absl::OkStatus());
  Check();
  EXPECT_FALSE(sim_->IsMapped({freed, MiB(8)})) << "what was idle is spare";
  EXPECT_EQ(stats().reserved.current, MiB(16));
  const DeviceAddress others = Alloc(MiB(48));
  std::memset(others.ptr(), 1, MiB(48).count());
  EXPECT_EQ(stats().chunks_created, 28u) << "28 chunks are 8 + 48 MiB: the spare ones were used";
  const auto* bytes = static_cast<const unsigned char*>(kept.ptr());
  for (uint64_t at = 0; at < MiB(8).count(); at += 4096) ASSERT_EQ(bytes[at], 0x5A);
  Free(kept);
  EXPECT_FALSE(sim_->IsMapped({kept, MiB(8)}));
  EXPECT_EQ(stats().idle.current, MiB(8));
}

TEST_F(AllocatorPools, ARetiredPoolCostsFreesOfOtherPoolsNoDriverCall) {
  Start();
  const PoolId a = NewPool("a");
  const StreamHandle own = NewStream();
  AllocIn(a, MiB(8), own);
  const DeviceAddress idle = AllocIn(a, MiB(8), own);
  const DeviceAddress elsewhere = Alloc(MiB(8));
  Launch(own, microseconds(100), idle, MiB(8));
  Free(idle);
  ASSERT_EQ(allocator_->RetirePool(a), absl::OkStatus());
  const uint64_t calls = stats().driver_calls;
  Free(elsewhere);
  Free(Alloc(MiB(8)));
  EXPECT_EQ(stats().driver_calls, calls) << "although it has memory that it must give up once the work is done";
  sim_->Advance(microseconds(100));
  Alloc(MiB(40));
  EXPECT_FALSE(sim_->IsMapped({idle, MiB(8)})) << "the next growth takes it";
}

TEST_F(AllocatorPools, QueuedWorkHoldsBackTheMemoryOfARetiredPool) {
  Start();
  const PoolId a = NewPool("a");
  const StreamHandle own = NewStream();
  const StreamHandle other = NewStream();
  const DeviceAddress block = AllocIn(a, MiB(8), own);
  const DeviceAddress shared = AllocIn(a, MiB(8), own);
  Launch(own, microseconds(100), block, MiB(8));
  RecordUse(shared, other);
  Launch(other, microseconds(200), shared, MiB(8));
  Free(block);
  Free(shared);
  ASSERT_EQ(allocator_->RetirePool(a), absl::OkStatus());
  Check();
  EXPECT_TRUE(sim_->IsMapped({block, MiB(16)}));
  sim_->Advance(microseconds(100));
  Alloc(MiB(8));
  EXPECT_EQ(stats().pending.current, MiB(8));
  sim_->Advance(microseconds(100));
  EXPECT_EQ(*allocator_->Trim(MiB(16)), Bytes()) << "already there";
  EXPECT_TRUE(allocator_->Trim(Bytes()).ok());
  Check();
  EXPECT_FALSE(sim_->IsMapped({block, MiB(2)}));
  EXPECT_EQ(stats().reserved.current, MiB(8));
  EXPECT_EQ(stats().pending.current, Bytes());
}

TEST_F(AllocatorPools, PoolsComeAndGoWithoutUsingUpAddresses) {
  Start();
  const Bytes addresses = stats().address_space.current;
  for (int i = 0; i < 50; ++i) {
    const PoolId pool = NewPool("step");
    const DeviceAddress small = AllocIn(pool, KiB(4));
    const DeviceAddress large = AllocIn(pool, MiB(40));
    ASSERT_EQ(allocator_->RetirePool(pool), absl::OkStatus());
    Free(large);
    Free(small);
  }
  EXPECT_EQ(stats().address_space.current, addresses);
  EXPECT_EQ(stats().chunks_created, 21u);
}

TEST_F(AllocatorPools, AStreamThatIsDestroyedIsDestroyedForAllPools) {
  Start();
  const PoolId a = NewPool("a");
  const StreamHandle stream = NewStream();
  const DeviceAddress in_a = AllocIn(a, MiB(16), stream);
  const DeviceAddress block = Alloc(MiB(16), stream);
  Launch(stream, microseconds(50), in_a, MiB(16));
  Free(in_a);
  Free(block);
  ASSERT_EQ(allocator_->OnStreamDestroyed(stream), absl::OkStatus());
  Check();
  DestroyStream(stream);
  Alloc(MiB(64));  // waits for the last event of the destroyed stream
  EXPECT_EQ(StatsOf(a).reserved.current, Bytes());
}

}  // namespace
}  // namespace expanse

// Programs that do what no program should, or run where everything is scarce: each is told what is wrong, nothing is
// lost, and the next correct call succeeds.

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/allocator_fixture.h"
#include "core/process_budgets.h"

namespace expanse {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

constexpr Bytes kMost(std::numeric_limits<uint64_t>::max());

class HostileTest : public AllocatorTest {
 protected:
  HostileTest() : budgets_(GetProcessBudgets()) {}
  void TearDown() override {
    EXPECT_EQ(SetProcessHandleBudget(budgets_.handles_limit), absl::OkStatus());
    EXPECT_EQ(SetProcessAddressBudget(budgets_.addresses_limit), absl::OkStatus());
    AllocatorTest::TearDown();
  }
  PoolId NewPool(const PoolOptions& options) {
    const absl::StatusOr<PoolId> pool = allocator_->CreatePool(options);
    EXPECT_TRUE(pool.ok()) << pool.status();
    return pool.value_or(PoolId());
  }

  const ProcessBudgets budgets_;
};

TEST_F(HostileTest, SizesThatOverflowWhenRoundedAreRefusedEverywhere) {
  Start();
  const DeviceAddress a = Alloc(MiB(2));
  const auto refused = [](const absl::Status& status) { return absl::IsInvalidArgument(status); };
  for (const Bytes size : {kMost, kMost - Bytes(510), kMost - MiB(2), Bytes(uint64_t{1} << 63)}) {
    EXPECT_TRUE(refused(allocator_->Allocate(size, StreamHandle()).status())) << size;
    EXPECT_TRUE(refused(allocator_->Pin(a, size))) << size;
    EXPECT_TRUE(refused(allocator_->HandlesSpanning(a, size).status())) << size;
    EXPECT_TRUE(absl::IsNotFound(allocator_->Unpin(a, size))) << size;
    EXPECT_TRUE(refused(allocator_->Prewarm(size))) << size;
    EXPECT_EQ(*allocator_->Trim(size), Bytes()) << size;
    EXPECT_EQ(*allocator_->TrimPool(PoolId(), size), Bytes()) << size;
    EXPECT_EQ(allocator_->SetLimit(size), absl::OkStatus()) << "the device is the limit then";
    EXPECT_EQ(allocator_->SetSoftLimit(size, [](Bytes, Bytes) { ADD_FAILURE(); }), absl::OkStatus());
    PoolOptions options;
    options.limit = size;
    EXPECT_TRUE(allocator_->Allocate(MiB(4), StreamHandle(), NewPool(options)).ok());
    Check();
  }
  EXPECT_TRUE(refused(allocator_->Pin(DeviceAddress(kMost.count()), Bytes(1))));
  EXPECT_TRUE(refused(allocator_->Free(DeviceAddress(kMost.count()))));
  EXPECT_TRUE(refused(allocator_->Pin(a + MiB(2) - Bytes(1), Bytes(2)))) << "by one byte";
  EXPECT_EQ(allocator_->Pin(a + MiB(2) - Bytes(1), Bytes(1)), absl::OkStatus());
  EXPECT_EQ(allocator_->Unpin(a + MiB(2) - Bytes(1), Bytes(1)), absl::OkStatus());
}

TEST_F(HostileTest, ALimitOfNothingIsRefusedAndTheOldOneStays) {
  Start();
  Alloc(MiB(10));
  const absl::Status status = allocator_->SetLimit(Bytes());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("limit is 0"));
  Alloc(MiB(54));
  AllocatorOptions options;
  options.limit = Bytes();
  const absl::Status created = Allocator::Create(sim_->driver(), options).status();
  EXPECT_EQ(created.code(), absl::StatusCode::kInvalidArgument) << created;
}

TEST_F(HostileTest, AnAllocatorCanBeMadeWhereTheDeviceIsFull) {
  Start();
  Free(Alloc(MiB(64)));
  absl::StatusOr<std::unique_ptr<Allocator>> second = Allocator::Create(sim_->driver(), {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE((*second)->Allocate(MiB(40), StreamHandle()).ok()) << "the first one gives back what is idle";
  EXPECT_EQ(stats().reserved.current, MiB(24));
}

// A request above the limit cannot be served whatever the device has, so that there is nothing to wait for.
TEST_F(HostileTest, NobodyWaitsForARequestThatTheLimitForbids) {
  AllocatorOptions options;
  options.limit = MiB(32);
  Start(SmallDevice(), options);
  Free(Alloc(MiB(8)));
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(8)) << "what was released may not count as free yet";
  const StreamHandle stream = NewStream();
  const DeviceAddress busy = Alloc(MiB(8), stream);
  Launch(stream, microseconds(1'000'000), busy, MiB(8));
  Free(busy);
  EXPECT_EQ(AllocFails(MiB(34)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().waits, 0u);
  Alloc(MiB(24));
  EXPECT_EQ(AllocFails(MiB(10)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().waits, 0u) << "more is live than would leave room";
  Alloc(MiB(8));
  EXPECT_EQ(stats().waits, 1u);
}

TEST_F(HostileTest, ALimitBelowWhatIsHeldStillServesWhatIsHeldOnceItIsComplete) {
  Start();
  const StreamHandle stream = NewStream();
  const DeviceAddress busy = Alloc(MiB(40), stream);
  Launch(stream, microseconds(100), busy, MiB(40));
  Free(busy);
  EXPECT_EQ(allocator_->SetLimit(MiB(4)), absl::OkStatus());
  EXPECT_EQ(stats().reserved.current, MiB(40)) << "work may still use it";
  Alloc(MiB(20));
  EXPECT_EQ(stats().waits, 1u);
}

// The stream is gone without a word, and the driver knows no ids: it cannot be recorded on, ever. That must not be in
// the way of others' waits for good.
class HostileStreamsTest : public HostileTest, public ::testing::WithParamInterface<bool> {};

TEST_P(HostileStreamsTest, FreeingOnADestroyedStreamCostsASynchronisationAndNoMemory) {
  Start();
  Driver driver = sim_->driver();
  if (!GetParam()) driver.stream_get_id = nullptr;
  allocator_ = *Allocator::Create(driver, {});
  const StreamHandle gone = NewStream();
  const StreamHandle own = NewStream();
  const DeviceAddress block = Alloc(MiB(20), own);
  const DeviceAddress of_gone = Alloc(MiB(20), gone);
  DestroyStream(gone);
  Free(block, gone);
  Free(of_gone);
  Alloc(MiB(64), own);
  EXPECT_EQ(*allocator_->Trim(Bytes(), TrimMode::kWait), Bytes());
}

INSTANTIATE_TEST_SUITE_P(Drivers, HostileStreamsTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& info) { return info.param ? "ids" : "no_ids"; });

TEST_F(HostileTest, OneHandleServesOneChunkAtATime) {
  Start();
  EXPECT_EQ(SetProcessHandleBudget(budgets_.handles_taken + 1), absl::OkStatus());
  const DeviceAddress a = Alloc(MiB(2));
  const StreamHandle other = NewStream();
  EXPECT_THAT(std::string(AllocFails(KiB(1), other).message()), HasSubstr("budgets left: 0 handles"));
  const absl::Status prewarmed = allocator_->Prewarm(MiB(8));
  EXPECT_EQ(prewarmed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(prewarmed.message()),
              HasSubstr("handle budget of " + std::to_string(budgets_.handles_taken + 1) + " is used up"));
  Free(a);
  const DeviceAddress moved = Alloc(MiB(1), other);
  EXPECT_EQ(stats().chunks_created, 1u);
  Free(moved);
  EXPECT_EQ(*allocator_->Trim(Bytes()), MiB(2));
  EXPECT_EQ(allocator_->Prewarm(MiB(2)), absl::OkStatus());
}

TEST_F(HostileTest, AnAddressBudgetOfOneDeviceMemoryServesManyStreamsAndPools) {
  EXPECT_EQ(SetProcessAddressBudget(budgets_.addresses_taken + MiB(64)), absl::OkStatus());
  Start();
  PoolOptions deterministic;
  deterministic.deterministic = true;
  EXPECT_EQ(allocator_->CreatePool(deterministic).status().code(), absl::StatusCode::kResourceExhausted);
  std::vector<PoolId> pools = {PoolId()};
  for (int i = 0; i < 3; ++i) pools.push_back(NewPool(PoolOptions()));
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 4; ++i) {
    const StreamHandle stream = NewStream();
    for (const PoolId pool : pools) {
      const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(KiB(300), stream, pool);
      ASSERT_TRUE(block.ok()) << block.status();
      blocks.push_back(*block);
    }
  }
  const std::string message(AllocFails(MiB(60)).message());
  EXPECT_THAT(message, HasSubstr("address budget"));
  for (const DeviceAddress block : blocks) Free(block);
  Alloc(MiB(60));
}

TEST_F(HostileTest, ADeviceThatShrinksAtAnyTimeCostsRequestsAndNothingElse) {
  Start();
  const Bytes held = MiB(20);
  Free(Alloc(held));
  sim_->SetTakenByOthers(DeviceOrdinal(), MiB(64));
  EXPECT_EQ(AllocFails(MiB(22)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(allocator_->Prewarm(MiB(30)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().reserved.current, held);
  Free(Alloc(held, NewStream()));
  EXPECT_EQ(*allocator_->Trim(MiB(10)), MiB(10));
  EXPECT_EQ(AllocFails(held).code(), absl::StatusCode::kResourceExhausted) << "others have it now";
  sim_->SetTakenByOthers(DeviceOrdinal(), Bytes());
  Alloc(MiB(64));
}

TEST_F(HostileTest, APoolMayBeRetiredByTheCallbackOfItsOwnRequest) {
  Start();
  const PoolId pool = NewPool(PoolOptions());
  const DeviceAddress a = allocator_->Allocate(MiB(40), StreamHandle(), pool).value();
  ASSERT_TRUE(allocator_
                  ->AddOutOfMemoryCallback([&](const Shortage&) {
                    (void)allocator_->RetirePool(pool);
                    return true;
                  })
                  .ok());
  EXPECT_EQ(allocator_->Allocate(MiB(40), StreamHandle(), pool).status().code(), absl::StatusCode::kFailedPrecondition);
  Check();
  Free(a);
  EXPECT_EQ(allocator_->TakeSnapshot().pools.size(), 1u) << "nothing keeps the retired one";
  Alloc(MiB(64));
}

// Everything that a callback may call, from within it, while the request that calls it holds on to its pool and stream.
TEST_F(HostileTest, AnOutOfMemoryCallbackMayCallEverything) {
  Start();
  const StreamHandle stream = NewStream();
  const PoolId pool = NewPool(PoolOptions());
  const DeviceAddress a = allocator_->Allocate(MiB(40), stream, pool).value();
  ASSERT_EQ(allocator_->Pin(a, MiB(40)), absl::OkStatus());
  CallbackId id = 0;
  int called = 0;
  const auto callback = [&](const Shortage& shortage) {
    ++called;
    EXPECT_EQ(shortage.asked, MiB(60));
    EXPECT_EQ(allocator_->Unpin(a, MiB(40)), absl::OkStatus());
    EXPECT_EQ(allocator_->OnStreamDestroyed(stream), absl::OkStatus());
    EXPECT_EQ(allocator_->Free(a, stream), absl::OkStatus());
    EXPECT_TRUE(allocator_->Trim(MiB(8), TrimMode::kWait).ok());
    EXPECT_EQ(allocator_->Prewarm(MiB(20)), absl::OkStatus());
    EXPECT_EQ(allocator_->Prewarm(MiB(30), PrewarmMode::kBackground), absl::OkStatus());
    EXPECT_EQ(allocator_->SetLimit(MiB(62)), absl::OkStatus());
    EXPECT_EQ(allocator_->RetirePool(pool), absl::OkStatus());
    EXPECT_EQ(allocator_->CheckInvariants(), absl::OkStatus());
    EXPECT_TRUE(absl::IsResourceExhausted(allocator_->Allocate(MiB(64), stream).status())) << "it is not called again";
    EXPECT_EQ(allocator_->RemoveOutOfMemoryCallback(id), absl::OkStatus());
    return true;
  };
  id = allocator_->AddOutOfMemoryCallback(callback).value();
  Alloc(MiB(60), stream);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(allocator_->WaitForPrewarm(), absl::OkStatus());
  EXPECT_EQ(stats().reserved.current, MiB(60));
  Check();
}

class HostileDestructionTest : public HostileTest, public ::testing::WithParamInterface<uint64_t> {};

TEST_P(HostileDestructionTest, EndsAJobThatHasHardlyBegunAndOneThatIsOver) {
  Start();
  EXPECT_EQ(allocator_->Prewarm(MiB(GetParam()), PrewarmMode::kBackground), absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(Mebibytes, HostileDestructionTest, ::testing::Values(2, 20, 64));

}  // namespace
}  // namespace expanse

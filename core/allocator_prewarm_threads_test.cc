// Memory that is created ahead in the background, while other threads need some.

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "core/allocator_fixture.h"
#include "vmm/mutex.h"

namespace expanse {
namespace {

// A driver in which one creation can be held up.
class Gate {
 public:
  void Close() {
    MutexLock lock(mu_);
    closed_ = true;
  }
  void Open() {
    MutexLock lock(mu_);
    closed_ = false;
    changed_.NotifyAll();
  }
  void AwaitArrival() {
    MutexLock lock(mu_);
    while (!waiting_) changed_.Wait(mu_);
  }
  void Pass() {
    MutexLock lock(mu_);
    waiting_ = closed_;
    changed_.NotifyAll();
    while (closed_) changed_.Wait(mu_);
    waiting_ = false;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;
};

// Entry points carry no argument that could say which they are.
Gate gate;
Driver real_driver;

abi::Result CreateThroughGate(abi::MemHandle* handle, size_t size, const abi::AllocationProp* prop, abi::u64 flags) {
  gate.Pass();
  return real_driver.mem_create(handle, size, prop, flags);
}

class PrewarmThreadsTest : public AllocatorTest {
 protected:
  void StartGated() {
    Start();
    real_driver = sim_->driver();
    gated_ = real_driver;
    gated_.mem_create = &CreateThroughGate;
    auto allocator = Allocator::Create(gated_, {});
    ASSERT_TRUE(allocator.ok()) << allocator.status();
    allocator_ = *std::move(allocator);
  }

  Driver gated_;
};

TEST_F(PrewarmThreadsTest, OthersAreServedMeanwhileAndWhoeverNeedsTheMemoryWaits) {
  StartGated();
  const DeviceAddress at_hand = Alloc(MiB(8));
  Free(at_hand);
  gate.Close();
  ASSERT_EQ(allocator_->Prewarm(MiB(48), PrewarmMode::kBackground), absl::OkStatus());
  gate.AwaitArrival();
  // The thread is inside the driver: memory at hand, frees and statistics are to be had all the same.
  Free(Alloc(MiB(8)));
  EXPECT_EQ(stats().reserved.current, MiB(8));
  EXPECT_EQ(stats().lock_stalls.count, 0u);

  std::atomic<bool> served{false};
  std::thread other([&] {
    ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
    const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(MiB(40), StreamHandle());
    EXPECT_TRUE(block.ok()) << block.status();
    served = true;
  });
  EXPECT_FALSE(served) << "nothing is there to serve it with";
  gate.Open();
  other.join();
  EXPECT_TRUE(served);
  EXPECT_EQ(allocator_->WaitForPrewarm(), absl::OkStatus());
  Check();
  // Whether it came before the last chunk that it needed was there is up to the scheduler; that it created none itself
  // is not.
  EXPECT_LE(stats().prewarm_stalls.count, 1u);
  EXPECT_EQ(stats().chunks_prewarmed + 4, stats().chunks_created);
}

TEST_F(PrewarmThreadsTest, WaitingIsCounted) {
  StartGated();
  gate.Close();
  ASSERT_EQ(allocator_->Prewarm(MiB(20), PrewarmMode::kBackground), absl::OkStatus());
  gate.AwaitArrival();
  // The gate opens once the request, which must wait first, has let go of the lock: only then can the growth be seen.
  std::thread opener([&] {
    while (allocator_->GetStats().growths == 0) std::this_thread::yield();
    gate.Open();
  });
  Alloc(MiB(16));
  opener.join();
  EXPECT_EQ(allocator_->WaitForPrewarm(), absl::OkStatus());
  EXPECT_EQ(stats().prewarm_stalls.count, 1u);
  EXPECT_EQ(stats().chunks_created, stats().chunks_prewarmed);
}

TEST_F(PrewarmThreadsTest, ACallWhileAJobRunsRaisesItsTarget) {
  StartGated();
  gate.Close();
  ASSERT_EQ(allocator_->Prewarm(MiB(10), PrewarmMode::kBackground), absl::OkStatus());
  gate.AwaitArrival();
  ASSERT_EQ(allocator_->Prewarm(MiB(4), PrewarmMode::kBackground), absl::OkStatus());
  ASSERT_EQ(allocator_->Prewarm(MiB(30), PrewarmMode::kBackground), absl::OkStatus());
  gate.Open();
  EXPECT_EQ(allocator_->Prewarm(MiB(20), PrewarmMode::kBlocking), absl::OkStatus());
  EXPECT_EQ(stats().reserved.current, MiB(30));
  Check();
}

TEST_F(PrewarmThreadsTest, ALimitThatIsLoweredMeanwhileHolds) {
  StartGated();
  Alloc(MiB(2));
  gate.Close();
  ASSERT_EQ(allocator_->Prewarm(MiB(40), PrewarmMode::kBackground), absl::OkStatus());
  gate.AwaitArrival();
  EXPECT_EQ(allocator_->SetLimit(MiB(2)), absl::OkStatus());
  gate.Open();
  EXPECT_EQ(allocator_->WaitForPrewarm().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().reserved.current, MiB(2));
  EXPECT_EQ(stats().chunks_released, 1u) << "the one that was on its way";
  Check();
}

TEST_F(PrewarmThreadsTest, AChunkTooManyThatTheDriverWillNotTakeBackIsOnTheBooks) {
  StartGated();
  Alloc(MiB(2));
  gate.Close();
  ASSERT_EQ(allocator_->Prewarm(MiB(40), PrewarmMode::kBackground), absl::OkStatus());
  gate.AwaitArrival();
  EXPECT_EQ(allocator_->SetLimit(MiB(2)), absl::OkStatus());
  sim_->FailNthCall(EntryPoint::mem_release, 1, abi::kUnknown);
  gate.Open();
  EXPECT_EQ(allocator_->WaitForPrewarm().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().reserved.current, MiB(4));
  EXPECT_EQ(stats().chunks_quarantined, 1u);
  Check();
}

TEST_F(PrewarmThreadsTest, AnAllocatorCanGoAwayAtAnyMomentOfAJob) {
  StartGated();
  gate.Close();
  ASSERT_EQ(allocator_->Prewarm(MiB(60), PrewarmMode::kBackground), absl::OkStatus());
  gate.AwaitArrival();
  std::thread opener([] { gate.Open(); });
  allocator_.reset();
  opener.join();
}

TEST_F(PrewarmThreadsTest, ManyThreadsPrewarmTrimAndAllocate) {
  Start();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
      std::mt19937 random(i);
      for (int step = 0; step < 400; ++step) {
        switch (random() % 4) {
          case 0: {
            const auto mode = random() % 2 == 0 ? PrewarmMode::kBackground : PrewarmMode::kBlocking;
            (void)allocator_->Prewarm(MiB(random() % 64), mode);  // the device may have no more
            break;
          }
          case 1:
            EXPECT_TRUE(allocator_->Trim(MiB(random() % 64)).ok());
            break;
          default: {
            const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(MiB(1 + random() % 12), StreamHandle());
            ASSERT_TRUE(block.ok()) << block.status();
            EXPECT_EQ(allocator_->Free(*block), absl::OkStatus());
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  (void)allocator_->WaitForPrewarm();  // the device may have had no more
  Check();
  EXPECT_EQ(stats().live_blocks, 0u);
  EXPECT_TRUE(allocator_->Trim(Bytes(), TrimMode::kWait).ok());
  EXPECT_EQ(stats().reserved.current, Bytes());
}

}  // namespace
}  // namespace expanse

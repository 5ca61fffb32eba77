// Threads that do everything at once to one allocator, and to allocators that come and go.

#include <atomic>
#include <chrono>
#include <iterator>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/allocator_fixture.h"
#include "vmm/mutex.h"

namespace expanse {
namespace {

using std::chrono::microseconds;

bool IsShort(const absl::Status& status) { return absl::IsResourceExhausted(status); }

// With faults, every driver call of the allocator may be refused at any time, those that undo others among them.
class EverythingAtOnce : public AllocatorTest, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr uint32_t kThreads = 4;
  static constexpr int kSteps = 600;

  struct Worker {
    std::mt19937 random;
    StreamHandle stream;  // nobody else gives it work
    uint64_t Pick(uint64_t n) { return random() % n; }
  };

  void Run() {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i] {
        ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
        Worker worker{std::mt19937(i), Create()};
        for (int step = 0; step < kSteps && !HasFailure(); ++step) Step(worker);
        Destroy(worker.stream);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void Step(Worker& worker) {
    if (GetParam() && worker.Pick(4) == 0) FailSomething(worker);
    const uint64_t choice = worker.Pick(32);
    if (choice < 12) {
      Allocate(worker);
    } else if (choice < 20) {
      FreeAny(worker);
    } else if (choice < 21) {
      Destroy(std::exchange(worker.stream, Create()));
    } else if (choice < 22) {
      ReplacePool(worker);
    } else if (choice < 24) {
      const auto mode = worker.Pick(2) == 0 ? PrewarmMode::kBackground : PrewarmMode::kBlocking;
      const absl::Status status = allocator_->Prewarm(MiB(worker.Pick(64)), mode);
      // A lower limit may have been set.
      if (!absl::IsInvalidArgument(status)) Expect(status, IsShort(status));
    } else if (choice < 27) {
      const auto mode = worker.Pick(2) == 0 ? TrimMode::kNoWait : TrimMode::kWait;
      Expect(allocator_->Trim(MiB(worker.Pick(64)), mode).status());
    } else if (choice < 28) {
      Expect(allocator_->TrimUnused().status());
    } else if (choice < 29) {
      Expect(allocator_->SetLimit(worker.Pick(2) == 0 ? std::optional<Bytes>(MiB(2 + worker.Pick(60))) : std::nullopt));
    } else if (choice < 30) {
      sim_->SetTakenByOthers(DeviceOrdinal(), MiB(worker.Pick(2) * worker.Pick(40)));
    } else if (choice < 31) {
      EXPECT_EQ(allocator_->CheckInvariants(), absl::OkStatus());
      EXPECT_EQ(allocator_->SetSoftLimit(MiB(worker.Pick(64)), [this](Bytes, Bytes) { (void)allocator_->GetStats(); }),
                absl::OkStatus());
    } else {
      sim_->Advance(microseconds(worker.Pick(500)));
    }
  }

  Mutex mu_;
  std::vector<DeviceAddress> blocks_ ABSL_GUARDED_BY(mu_);  // of all threads
  std::atomic<uint64_t> pool_{0};
  std::atomic<uint64_t> asked_{0};
  std::atomic<uint64_t> served_{0};

 private:
  // What a driver that refuses nothing never answers with.
  static void Expect(const absl::Status& status, bool expected = false) {
    EXPECT_TRUE(status.ok() || expected || GetParam()) << status;
  }

  StreamHandle Create() {
    abi::Stream raw = nullptr;
    EXPECT_EQ(sim_->driver().stream_create(&raw, abi::kStreamNonBlocking), abi::kSuccess);
    return StreamHandle(raw);
  }
  void Destroy(StreamHandle stream) {
    Expect(allocator_->OnStreamDestroyed(stream));
    EXPECT_EQ(sim_->driver().stream_destroy(static_cast<abi::Stream>(stream.raw())), abi::kSuccess);
  }

  void Allocate(Worker& worker) {
    const Bytes size(1 + worker.Pick(worker.Pick(2) == 0 ? KiB(200).count() : MiB(10).count()));
    const absl::StatusOr<DeviceAddress> block =
        allocator_->Allocate(size, worker.stream, PoolId(worker.Pick(2) * pool_));
    if (!block.ok()) {
      Expect(block.status(), IsShort(block.status()) || absl::IsFailedPrecondition(block.status()));
      return;
    }
    ++served_;
    Launch(worker.stream, microseconds(worker.Pick(300)), *block, size);
    if (worker.Pick(4) == 0) {
      EXPECT_EQ(allocator_->Pin(*block, size), absl::OkStatus());
      EXPECT_EQ(allocator_->Unpin(*block, size), absl::OkStatus());
    }
    MutexLock lock(mu_);
    blocks_.push_back(*block);
  }

  // Another thread's, most likely; its stream may be gone.
  void FreeAny(Worker& worker) {
    DeviceAddress block;
    {
      MutexLock lock(mu_);
      if (blocks_.empty()) return;
      std::swap(blocks_[worker.Pick(blocks_.size())], blocks_.back());
      block = blocks_.back();
      blocks_.pop_back();
    }
    EXPECT_EQ(worker.Pick(2) == 0 ? allocator_->Free(block) : allocator_->Free(block, worker.stream), absl::OkStatus());
  }

  void ReplacePool(Worker& worker) {
    PoolOptions options;
    options.deterministic = worker.Pick(2) == 0;
    if (worker.Pick(2) == 0) options.limit = MiB(2 + worker.Pick(20));
    const absl::StatusOr<PoolId> next = allocator_->CreatePool(options);
    Expect(next.status());
    if (!next.ok()) return;
    const PoolId last(pool_.exchange(next->value()));
    if (last.is_default()) return;
    EXPECT_EQ(allocator_->RetirePool(last), absl::OkStatus());
  }

  void FailSomething(Worker& worker) {
    using E = EntryPoint;
    constexpr E kEntryPoints[] = {E::mem_unmap,   E::mem_map,           E::mem_set_access,
                                  E::mem_create,  E::mem_release,       E::event_record,
                                  E::event_query, E::event_synchronize, E::ctx_synchronize};
    constexpr abi::Result kErrors[] = {abi::kOutOfMemory, abi::kInvalidValue, abi::kUnknown};
    sim_->FailNthCall(kEntryPoints[worker.Pick(std::size(kEntryPoints))], 1 + worker.Pick(3), kErrors[worker.Pick(3)]);
  }
};

TEST_P(EverythingAtOnce, KeepsTheBooksAndTheMemory) {
  AllocatorOptions options;
  options.trim_after = microseconds(2000);
  options.clock = [this] { return sim_->now(); };
  Start(SmallDevice(), options);
  MappingCallbacks callbacks;
  callbacks.before_unmap = [this](AddressRange) { return ++asked_ % 8 != 0; };
  const MappingCallbacksId id = allocator_->AddMappingCallbacks(callbacks).value();
  ASSERT_TRUE(allocator_->AddOutOfMemoryCallback([](const Shortage&) { return true; }).ok());
  Run();
  sim_->ClearFaults();
  sim_->SetTakenByOthers(DeviceOrdinal(), Bytes());
  (void)allocator_->WaitForPrewarm();  // limit or device may have been in the way
  EXPECT_GT(served_, 0u);
  EXPECT_EQ(allocator_->RemoveMappingCallbacks(id), absl::OkStatus());
  MutexLock lock(mu_);
  for (const DeviceAddress block : blocks_) EXPECT_EQ(allocator_->Free(block), absl::OkStatus());
  EXPECT_TRUE(allocator_->Trim(Bytes(), TrimMode::kWait).ok());
  Check();
  EXPECT_EQ(stats().live_blocks, 0u);
  EXPECT_EQ(stats().reserved.current, kChunk * stats().chunks_quarantined);
  EXPECT_EQ(sim_->committed(DeviceOrdinal()), stats().reserved.current);
}

INSTANTIATE_TEST_SUITE_P(Drivers, EverythingAtOnce, ::testing::Bool(), [](const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "refusing" : "working";
});

class HostileThreadsTest : public AllocatorTest {};

// The program holds a lock of its own while it asks for memory, and takes it in its callback: a job that waits for the
// callback must not be waited for by the request.
TEST_F(HostileThreadsTest, ARequestDoesNotWaitForAJobThatIsInTheProgramsCallback) {
  Mutex of_program;
  std::atomic<bool> in_callback{false};
  AllocatorOptions options;
  options.soft_limit = MiB(10);
  options.on_soft_limit = [&](Bytes, Bytes) {
    in_callback = true;
    MutexLock lock(of_program);
  };
  Start(SmallDevice(), options);
  {
    MutexLock lock(of_program);
    ASSERT_EQ(allocator_->Prewarm(MiB(40), PrewarmMode::kBackground), absl::OkStatus());
    while (!in_callback) std::this_thread::yield();
    Alloc(MiB(30));
  }
  EXPECT_EQ(allocator_->WaitForPrewarm(), absl::OkStatus());
  Check();
}

// One that is being destroyed, its job still running, is asked by one that starves.
TEST_F(HostileThreadsTest, AllocatorsGoWhileTheirMemoryIsPrewarmedAndAskedFor) {
  Start();
  std::atomic<bool> over{false};
  std::thread coming_and_going([&] {
    for (int i = 0; i < 60; ++i) {
      absl::StatusOr<std::unique_ptr<Allocator>> other = Allocator::Create(sim_->driver(), {});
      ASSERT_TRUE(other.ok()) << other.status();
      EXPECT_EQ((*other)->Prewarm(MiB(64), PrewarmMode::kBackground), absl::OkStatus());
      if (i % 2 == 0) (void)(*other)->WaitForPrewarm();  // the device may have no more
    }
    over = true;
  });
  uint64_t served = 0;
  while (!over || served == 0) {
    const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(MiB(40), StreamHandle());
    EXPECT_TRUE(block.ok() || IsShort(block.status())) << block.status();
    if (!block.ok()) continue;
    ++served;
    EXPECT_EQ(allocator_->Free(*block), absl::OkStatus());
    EXPECT_TRUE(allocator_->Trim(Bytes()).ok());
  }
  coming_and_going.join();
  Check();
}

}  // namespace
}  // namespace expanse

// Several threads at once, on memory that does not suffice for all of them.

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "core/allocator_fixture.h"
#include "vmm/mutex.h"

namespace expanse {
namespace {

class AllocatorThreadsTest : public AllocatorTest {
 protected:
  static constexpr int kThreads = 4;

  // Runs `body(thread, random)` in each thread.
  template <typename Body>
  void RunThreads(Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i, &body] {
        ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
        std::mt19937 random(static_cast<uint32_t>(i));
        body(i, random);
      });
    }
    for (std::thread& thread : threads) thread.join();
    Check();
  }
};

TEST_F(AllocatorThreadsTest, ThreadsOnStreamsOfTheirOwnShareTheDevice) {
  Start();
  std::array<StreamHandle, kThreads> streams;
  for (StreamHandle& stream : streams) stream = NewStream();
  std::atomic<uint64_t> served{0};
  RunThreads([&](int thread, std::mt19937& random) {
    const StreamHandle stream = streams[static_cast<size_t>(thread)];
    std::vector<DeviceAddress> blocks;
    for (int i = 0; i < 2000; ++i) {
      if (blocks.size() < 6 && random() % 2 == 0) {
        const Bytes size = Bytes(1 + random() % MiB(5).count());
        const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(size, stream);
        if (block.ok()) {
          ++served;
          Launch(stream, std::chrono::microseconds(random() % 200), *block, size);
          blocks.push_back(*block);
        } else {
          EXPECT_EQ(block.status().code(), absl::StatusCode::kResourceExhausted) << block.status();
        }
      } else if (!blocks.empty()) {
        const size_t victim = random() % blocks.size();
        EXPECT_EQ(allocator_->Free(blocks[victim]), absl::OkStatus());
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(victim));
      }
      if (i % 64 == 0) sim_->Advance(std::chrono::microseconds(50));
    }
    for (DeviceAddress block : blocks) EXPECT_EQ(allocator_->Free(block), absl::OkStatus());
  });
  EXPECT_GT(served, 1000u);
  EXPECT_EQ(stats().live_blocks, 0u);
}

TEST_F(AllocatorThreadsTest, BlocksMayBeFreedByOtherThreads) {
  Start();
  Mutex mu;
  std::vector<DeviceAddress> shared;
  std::array<StreamHandle, kThreads> streams;
  for (StreamHandle& stream : streams) stream = NewStream();
  RunThreads([&](int thread, std::mt19937& random) {
    for (int i = 0; i < 1500; ++i) {
      DeviceAddress taken;
      {
        MutexLock lock(mu);
        if (!shared.empty() && random() % 2 == 0) {
          taken = shared.back();
          shared.pop_back();
        }
      }
      if (!taken.is_null()) {
        EXPECT_EQ(allocator_->RecordUse(taken, streams[random() % kThreads]), absl::OkStatus());
        EXPECT_EQ(allocator_->Free(taken), absl::OkStatus());
        continue;
      }
      const absl::StatusOr<DeviceAddress> block =
          allocator_->Allocate(Bytes(1 + random() % MiB(3).count()), streams[static_cast<size_t>(thread)]);
      if (!block.ok()) continue;
      MutexLock lock(mu);
      shared.push_back(*block);
    }
  });
  for (DeviceAddress block : shared) Free(block);
  EXPECT_EQ(stats().live.current, Bytes());
}

TEST_F(AllocatorThreadsTest, FiguresCanBeReadAndMemoryTrimmedMeanwhile) {
  Start();
  RunThreads([&](int thread, std::mt19937& random) {
    for (int i = 0; i < 1000; ++i) {
      if (thread == 0) {
        const Stats now = stats();
        EXPECT_LE(now.live.current, now.allocated.current);
        EXPECT_LE(now.allocated.current, now.reserved.current);
      } else if (thread == 1) {
        EXPECT_TRUE(allocator_->Trim(Bytes(random() % MiB(64).count())).ok());
        EXPECT_EQ(allocator_->CheckInvariants(), absl::OkStatus());
      } else {
        const absl::StatusOr<DeviceAddress> block =
            allocator_->Allocate(Bytes(1 + random() % MiB(8).count()), StreamHandle());
        if (!block.ok()) continue;
        EXPECT_EQ(allocator_->Free(*block), absl::OkStatus());
      }
    }
  });
}

TEST_F(AllocatorThreadsTest, EveryThreadHasADefaultStreamOfItsOwn) {
  Start();
  const DeviceAddress mine = Alloc(MiB(4), StreamHandle::PerThread());
  Launch(StreamHandle::PerThread(), std::chrono::microseconds(1000), mine, MiB(4));
  Free(mine);
  std::thread other([&] {
    ASSERT_EQ(sim_->driver().ctx_set_current(context_), abi::kSuccess);
    const absl::StatusOr<DeviceAddress> theirs = allocator_->Allocate(MiB(4), StreamHandle::PerThread());
    ASSERT_TRUE(theirs.ok());
    EXPECT_NE(*theirs, mine);
    Launch(StreamHandle::PerThread(), std::chrono::microseconds(10), *theirs, MiB(4));
    // Takes the first thread's memory too, which this thread can only see complete through the legacy stream.
    const absl::StatusOr<DeviceAddress> rest = allocator_->Allocate(MiB(60), StreamHandle::PerThread());
    ASSERT_TRUE(rest.ok()) << rest.status();
    Launch(StreamHandle::PerThread(), std::chrono::microseconds(10), *rest, MiB(60));
    EXPECT_EQ(allocator_->Free(*theirs), absl::OkStatus());
    EXPECT_EQ(allocator_->Free(*rest), absl::OkStatus());
  });
  other.join();
  EXPECT_GE(stats().waits, 1u);
  EXPECT_EQ(Alloc(MiB(64), StreamHandle::PerThread()).is_null(), false);
}

// All use one pool that one of them retires while others ask for memory of it, wait and pin.
TEST_F(AllocatorThreadsTest, PoolsAreRetiredWhileOthersUseThem) {
  Start();
  std::array<StreamHandle, kThreads> streams;
  for (StreamHandle& stream : streams) stream = NewStream();
  std::atomic<uint64_t> pool{0};
  std::atomic<uint64_t> retired{0};
  std::atomic<uint64_t> served{0};
  RunThreads([&](int thread, std::mt19937& random) {
    const StreamHandle stream = streams[static_cast<size_t>(thread)];
    for (int i = 0; i < 600; ++i) {
      if (random() % 16 == 0) {
        PoolOptions options;
        options.deterministic = random() % 2 == 0;
        if (random() % 2 == 0) options.limit = MiB(16);
        const absl::StatusOr<PoolId> next = allocator_->CreatePool(options);
        ASSERT_TRUE(next.ok()) << next.status();
        const PoolId last(pool.exchange(next->value()));
        if (!last.is_default()) {
          EXPECT_EQ(allocator_->RetirePool(last), absl::OkStatus());
          ++retired;
        }
      }
      const Bytes size = Bytes(1 + random() % MiB(6).count());
      const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(size, stream, PoolId(pool));
      if (!block.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(block.status()) || absl::IsFailedPrecondition(block.status()))
            << block.status();
        continue;
      }
      ++served;
      const StreamHandle other = streams[random() % kThreads];
      EXPECT_EQ(allocator_->Pin(*block, size), absl::OkStatus());
      EXPECT_EQ(allocator_->RecordUse(*block, other), absl::OkStatus());
      Launch(stream, std::chrono::microseconds(random() % 200), *block, size);
      EXPECT_EQ(allocator_->Unpin(*block, size), absl::OkStatus());
      EXPECT_EQ(allocator_->Free(*block), absl::OkStatus());
    }
  });
  EXPECT_GT(served, 1000u);
  EXPECT_GT(retired, 50u);
  EXPECT_EQ(stats().live_blocks, 0u);
  EXPECT_EQ(stats().pinned.current, Bytes());
}

TEST_F(AllocatorThreadsTest, AThreadThatWaitsDoesNotHoldTheOthersUp) {
  Start();
  const StreamHandle slow = NewStream();
  const DeviceAddress large = Alloc(MiB(48), slow);
  Launch(slow, std::chrono::microseconds(1000), large, MiB(48));
  Free(large);
  RunThreads([&](int thread, std::mt19937&) {
    const absl::StatusOr<DeviceAddress> block = allocator_->Allocate(thread == 0 ? MiB(40) : MiB(2), StreamHandle());
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_EQ(allocator_->Free(*block), absl::OkStatus());
  });
}

}  // namespace
}  // namespace expanse
